// Tiles of products by oneDNN. The build compiles this file or matmul_plain.cpp.
#include <dnnl_debug.h>
#include <fmt/format.h>
#include <omp.h>
#include <dnnl.hpp>

#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/layers/matmul.h"
#include "kernels/types/convert.h"

namespace trellis::kernels {
namespace {

class Statuses : public std::error_category {
 public:
  const char* name() const noexcept override { return "oneDNN"; }
  std::string message(int status) const override { return dnnl_status2str(static_cast<dnnl_status_t>(status)); }
};

[[noreturn]] void fail(dnnl_status_t status, const MatmulShape& s) {
  static const Statuses statuses;
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  throw std::system_error(static_cast<int>(status), statuses, fmt::format("matmul of {}x{}x{}", s.m, s.n, s.k));
}

// oneDNN uses as many threads as OpenMP is set to for the calling thread. This sets one, then the former number again.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

dnnl_dim_t dim(std::size_t n) { return static_cast<dnnl_dim_t>(n); }

void f32_product(const MatmulShape& s, MatrixView a, MatrixView b, float* out, std::size_t stride) {
  const auto word = [](const MatrixView& f) { return f.transposed ? 'T' : 'N'; };
  const auto status = dnnl_sgemm(word(a), word(b), dim(s.m), dim(s.n), dim(s.k), 1, static_cast<const float*>(a.data),
                                 dim(a.stride), static_cast<const float*>(b.data), dim(b.stride), 0, out, dim(stride));
  if (status != dnnl_success) fail(status, s);
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

using Layout = dnnl::memory::desc;

Layout layout(std::size_t rows, std::size_t columns, const MatrixView& f) {
  const dnnl::memory::dims strides =
      f.transposed ? dnnl::memory::dims{1, dim(f.stride)} : dnnl::memory::dims{dim(f.stride), 1};
  return {{dim(rows), dim(columns)}, dnnl::memory::data_type::bf16, strides};
}

dnnl::matmul::primitive_desc described(const MatmulShape& s, const MatrixView& a, const MatrixView& b,
                                       std::size_t stride) {
  const Layout out({dim(s.m), dim(s.n)}, dnnl::memory::data_type::f32, dnnl::memory::dims{dim(stride), 1});
  return {{layout(s.m, s.k, a), layout(s.k, s.n, b), out}, engine()};
}

void bf16_product(const MatmulShape& s, const MatrixView& a, const MatrixView& b, float* out, std::size_t stride) {
  const auto plan = described(s, a, b, stride);  // cheap if repeated: oneDNN caches it
  const auto memory = [](const Layout& l, const void* data) {
    return dnnl::memory(l, engine(), const_cast<void*>(data));
  };
  dnnl::stream stream(engine());
  dnnl::matmul(plan).execute(stream, {{DNNL_ARG_SRC, memory(plan.src_desc(), a.data)},
                                      {DNNL_ARG_WEIGHTS, memory(plan.weights_desc(), b.data)},
                                      {DNNL_ARG_DST, memory(plan.dst_desc(), out)}});
  stream.wait();
}

bool has_bf16() {
  static const bool here = [] {
    try {
      const std::uint16_t none[1] = {};
      described({1, 1, 1}, {none, 1}, {none, 1}, 1);
      return true;
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return here;
}

std::vector<float> widened(std::size_t rows, std::size_t columns, MatrixView& f) {
  if (f.transposed) std::swap(rows, columns);
  std::vector<float> wide(rows * columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      wide[i * columns + j] =
          static_cast<float>(load(DType::bf16, static_cast<const std::byte*>(f.data) + (i * f.stride + j) * 2));
  f.data = wide.data();
  f.stride = columns;
  return wide;
}

}  // namespace

std::string_view matmul_provider() {
  static const std::string name = [] {
    const dnnl_version_t* v = dnnl_version();
    return fmt::format("oneDNN {}.{}.{}{}", v->major, v->minor, v->patch, has_bf16() ? "" : ", bf16 widened to f32");
  }();
  return name;
}

void tile_product(const MatmulShape& s, DType from, MatrixView a, MatrixView b, float* out, std::size_t out_stride) {
  const OneThread alone;
  try {
    if (from == DType::f32) return f32_product(s, a, b, out, out_stride);
    if (has_bf16()) return bf16_product(s, a, b, out, out_stride);
    const std::vector<float> wide_a = widened(s.m, s.k, a), wide_b = widened(s.k, s.n, b);
    f32_product(s, a, b, out, out_stride);
  } catch (const dnnl::error& e) {
    fail(e.status, s);
  }
}

}  // namespace trellis::kernels
