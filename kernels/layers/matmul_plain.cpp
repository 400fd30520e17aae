// Tiles of products by plain loops, where the build has no oneDNN.
#include <algorithm>
#include <vector>

#include "kernels/layers/matmul.h"
#include "kernels/types/convert.h"

namespace trellis::kernels {
namespace {

float value(DType type, const MatrixView& f, std::size_t row, std::size_t column) {
  const std::size_t element = f.transposed ? column * f.stride + row : row * f.stride + column;
  return static_cast<float>(load(type, static_cast<const std::byte*>(f.data) + element * size_of(type)));
}

}  // namespace

std::string_view matmul_provider() {
  return "plain loops, slow: built without oneDNN; install libdnnl-dev, then configure and build again";
}

void tile_product(const MatmulShape& s, DType from, MatrixView a, MatrixView b, float* out, std::size_t out_stride) {
  std::vector<float> row(s.n);
  for (std::size_t i = 0; i < s.m; ++i) std::fill_n(out + i * out_stride, s.n, 0.0F);
  for (std::size_t x = 0; x < s.k; ++x) {
    for (std::size_t j = 0; j < s.n; ++j) row[j] = value(from, b, x, j);
    for (std::size_t i = 0; i < s.m; ++i) {
      const float factor = value(from, a, i, x);
      for (std::size_t j = 0; j < s.n; ++j) out[i * out_stride + j] += factor * row[j];
    }
  }
}

}  // namespace trellis::kernels
