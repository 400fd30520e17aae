#include "kernels/layers/matmul.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/dispatch/parallel.h"
#include "kernels/dispatch/registry.h"
#include "kernels/types/check_arguments.h"
#include "kernels/types/convert.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

// A tile of c: fixed, so that the number of threads changes nothing, and small enough to stay in the L2 cache.
constexpr std::size_t tile_rows = 256;
constexpr std::size_t tile_columns = 512;

struct Whole {
  const MatmulShape& shape;
  DType from;
  MatrixView a, b;
  DType to;
  std::byte* c;
  std::size_t stride;
  const MatmulOptions& options;
};

// The bytes from a matrix's first element to the end of its last; 0 if it has none.
std::size_t extent(const char* name, std::size_t rows, std::size_t columns, std::size_t stride, std::size_t size) {
  if (stride < columns)
    text::refuse("matmul: rows of {} are {} elements long and only {} apart", name, columns, stride);
  if (rows == 0 || columns == 0) return 0;
  if (rows > 1 && stride > std::size_t{1} << 62) bytes_of("matmul", stride, size);
  if (stride != 0 && rows - 1 > (std::size_t{1} << 62) / stride)
    text::refuse("matmul: {} rows of {}, {} elements apart, are more than memory can hold", rows, name, stride);
  return bytes_of("matmul", (rows - 1) * stride + columns, size);
}

std::size_t extent(const char* name, std::size_t rows, std::size_t columns, const MatrixView& f, DType type) {
  return f.transposed ? extent(name, columns, rows, f.stride, size_of(type))
                      : extent(name, rows, columns, f.stride, size_of(type));
}

bool product_is_zero(const Whole& w) { return w.shape.k == 0 || w.options.alpha == 0; }

void check(const Whole& w) {
  const auto known = [](DType d) { return d == DType::f32 || d == DType::bf16; };
  if (!known(w.from) || !known(w.to) || (w.from == DType::f32 && w.to != DType::f32))
    text::refuse("matmul: no product of {} into {}; there are f32 into f32, bf16 into bf16 and into f32", name(w.from),
                 name(w.to));
  check_threads("matmul", w.options.threads);
  const auto [m, n, k] = w.shape;
  const KernelOperand write{"c", w.c, extent("c", m, n, w.stride, size_of(w.to))};
  std::size_t a = extent("a", m, k, w.a, w.from), b = extent("b", k, n, w.b, w.from);
  if (write.bytes == 0 || product_is_zero(w)) a = b = 0;
  const KernelOperand reads[] = {{"a", w.a.data, a}, {"b", w.b.data, b}};
  check_operands("matmul", {&write, 1}, reads, false);
}

const std::byte* at(const MatrixView& f, DType type, std::size_t row, std::size_t column) {
  const std::size_t element = f.transposed ? column * f.stride + row : row * f.stride + column;
  return static_cast<const std::byte*>(f.data) + element * size_of(type);
}

float value(DType type, const std::byte* at) {
  if (type == DType::bf16) {
    std::uint16_t code = 0;
    std::memcpy(&code, at, sizeof code);
    return widen_bf16(code);
  }
  float f = 0;
  std::memcpy(&f, at, sizeof f);
  return f;
}

void put(float v, float& to) { to = v; }
void put(float v, std::uint16_t& to) { to = bf16_nearest(v); }
float get(float v) { return v; }
float get(std::uint16_t v) { return widen_bf16(v); }

template <class Code>
void finish_row(const MatmulOptions& o, Code* to, const float* product, std::size_t n) {
  if (o.beta == 0)
    for (std::size_t j = 0; j < n; ++j) put(o.alpha * product[j], to[j]);
  else
    for (std::size_t j = 0; j < n; ++j) put(o.alpha * product[j] + o.beta * get(to[j]), to[j]);
}

// Writes a row of products, or a part of one, to c, with alpha and beta applied.
template <class Code>
void finish_any(const MatmulOptions& o, std::byte* to, const float* product, std::size_t n) {
  if (reinterpret_cast<std::uintptr_t>(to) % alignof(Code) == 0)
    return finish_row(o, reinterpret_cast<Code*>(to), product, n);
  for (std::size_t j = 0; j < n; ++j) {
    Code code{};
    std::memcpy(&code, to + j * sizeof code, sizeof code);
    finish_row(o, &code, product + j, 1);
    std::memcpy(to + j * sizeof code, &code, sizeof code);
  }
}

void finish(const Whole& w, std::size_t row, std::size_t column, const float* product, std::size_t n) {
  std::byte* const to = w.c + (row * w.stride + column) * size_of(w.to);
  if (w.to == DType::f32) return finish_any<float>(w.options, to, product, n);
  finish_any<std::uint16_t>(w.options, to, product, n);
}

// Runs an elementwise kernel on one row of a tile.
class RowKernel {
 public:
  explicit RowKernel(std::string_view name) : kernel_(kernel_named(name)), body_(kernel_.chosen()) {}
  void run(void* to, const void* from, std::size_t n, const void* settings = nullptr) const {
    body_({.n = n,
           .writes = &to,
           .reads = &from,
           .sources = 1,
           .settings = settings == nullptr ? kernel_.settings : settings});
  }

 private:
  const Kernel& kernel_;
  Body body_;
};

// Does what finish() does for alpha 1, by a vector kernel in the cases that have one.
void finish_fast(const Whole& w, std::size_t row, std::size_t column, const float* product, std::size_t n) {
  static const RowKernel narrow("cast.f32.bf16.nearest"), add("axpy.f32.nearest");
  constexpr float one = 1;
  std::byte* const to = w.c + (row * w.stride + column) * size_of(w.to);
  if (w.options.beta == 0 && w.to == DType::bf16) return narrow.run(to, product, n);
  if (w.options.beta == 1 && w.to == DType::f32) return add.run(to, product, n, &one);
  finish(w, row, column, product, n);
}

void tile(const Whole& w, std::size_t row, std::size_t column, std::vector<float>& wait) {
  const std::size_t m = std::min(tile_rows, w.shape.m - row), n = std::min(tile_columns, w.shape.n - column);
  const MatrixView a{at(w.a, w.from, row, 0), w.a.stride, w.a.transposed};
  const MatrixView b{at(w.b, w.from, 0, column), w.b.stride, w.b.transposed};
  std::byte* const to = w.c + (row * w.stride + column) * size_of(w.to);
  if (w.to == DType::f32 && w.options.alpha == 1 && w.options.beta == 0 &&
      reinterpret_cast<std::uintptr_t>(to) % alignof(float) == 0)
    return tile_product({m, n, w.shape.k}, w.from, a, b, reinterpret_cast<float*>(to), w.stride);
  if (wait.size() < m * n) wait.resize(m * n);
  tile_product({m, n, w.shape.k}, w.from, a, b, wait.data(), n);
  for (std::size_t i = 0; i < m; ++i) {
    const float* const product = wait.data() + i * n;
    if (w.options.alpha == 1)
      finish_fast(w, row + i, column, product, n);
    else
      finish(w, row + i, column, product, n);
  }
}

void without_product(const Whole& w) {
  for (std::size_t i = 0; i < w.shape.m; ++i)
    for (std::size_t j = 0; j < w.shape.n; ++j) {
      std::byte* const to = w.c + (i * w.stride + j) * size_of(w.to);
      const float rest = w.options.beta == 0 ? 0 : w.options.beta * value(w.to, to);
      store(w.to, to, static_cast<double>(rest));
    }
}

}  // namespace

void matmul(const MatmulShape& shape, DType from, MatrixView a, MatrixView b, DType to, void* c, std::size_t c_stride,
            const MatmulOptions& options) {
  const Whole w{shape, from, a, b, to, static_cast<std::byte*>(c), c_stride, options};
  check(w);
  if (shape.m == 0 || shape.n == 0) return;
  if (product_is_zero(w)) return without_product(w);
  const auto tiles = [](std::size_t length, std::size_t tile) { return (length - 1) / tile + 1; };
  const std::size_t down = tiles(shape.m, tile_rows), across = tiles(shape.n, tile_columns);
  parallel(options.threads, down * across, [&](std::size_t first, std::size_t last) {
    static thread_local std::vector<float> wait;  // kept, as half a megabyte would else be allocated for each product
    for (std::size_t t = first; t < last; ++t) tile(w, t % down * tile_rows, t / down * tile_columns, wait);
  });
}

void matmul_truth(const MatmulShape& shape, DType from, MatrixView a, MatrixView b, DType to, void* c,
                  std::size_t c_stride, const MatmulOptions& options) {
  const Whole w{shape, from, a, b, to, static_cast<std::byte*>(c), c_stride, options};
  check(w);
  if (product_is_zero(w)) return without_product(w);
  for (std::size_t i = 0; i < shape.m; ++i)
    for (std::size_t j = 0; j < shape.n; ++j) {
      float sum = 0;
      for (std::size_t x = 0; x < shape.k; ++x) sum += value(from, at(a, from, i, x)) * value(from, at(b, from, x, j));
      finish(w, i, j, &sum, 1);
    }
}

double matmul_bound(std::size_t k, double magnitude, double sizes, double alpha) {
  const double roundings = (static_cast<double>(k) + 2) * 0x1p-24;
  return 2 * roundings / (1 - roundings) * magnitude +
         0x1p-126 * (sizes + 2 * static_cast<double>(k) * std::fabs(alpha) + 2);
}

}  // namespace trellis::kernels
