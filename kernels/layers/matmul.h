// Matrix products, row-major, of f32 or bf16, accumulated in f32; through oneDNN where the build has it.
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

// A factor of a product as it lies in memory: data[i * stride + j] is its element (i, j), or (j, i) if it is
// transposed. stride is in elements, at least the length of a stored row.
struct MatrixView {
  const void* data;
  std::size_t stride;
  bool transposed = false;
};

struct MatmulShape {
  std::size_t m;  // rows of c, and of a after any transposition
  std::size_t n;  // columns of c and b
  std::size_t k;  // columns of a, rows of b
};

struct MatmulOptions {
  float alpha = 1;
  float beta = 0;
  int threads = 1;
};

// c = alpha a b + beta c. The factors are of type `from` (f32 or bf16), c is of type `to` (the same, or f32).
//
// The product is accumulated in f32, multiplied by alpha, beta c is added in f32, and the sum rounded once to `to`.
// With beta 0 c is not read; with alpha 0 or k 0 the factors are not, and the product counts as 0. c may not overlap a
// factor. What lies between c's rows is left alone.
//
// The order of additions is oneDNN's, for fixed tiles of c, each the work of one thread: so a result does not depend on
// the number of threads, but may on the CPU. matmul_bound says how far it can be from the truth.
void matmul(const MatmulShape&, DType from, MatrixView a, MatrixView b, DType to, void* c, std::size_t c_stride,
            const MatmulOptions& = {});

// The same by the definition: for each element the products a[i][x] b[x][j] added in f32 one by one, x rising.
void matmul_truth(const MatmulShape&, DType from, MatrixView a, MatrixView b, DType to, void* c, std::size_t c_stride,
                  const MatmulOptions& = {});

// How far an element of matmul can be from that of matmul_truth, before the rounding to `to`, where nothing overflows.
// magnitude: |alpha| sum |a b| + |beta c|; sizes: |alpha| sum (|a| + |b|), the sums over the k products of the element.
//
// Whatever the order of k products and the sums of them, with or without fused steps, no term meets more than k + 2
// roundings of relative size u = 2^-24 (k for product and sums, alpha, the last sum). So each result is within
// g magnitude of the exact one, g = (k + 2) u / (1 - (k + 2) u), and the two within twice that. oneDNN's bf16
// instruction also takes subnormal factors and results for 0: at most 2^-126 (|a| + |b| + 2) a product.
// Rounding is monotonic: the bf16 results lie between the roundings of the ends of the interval.
double matmul_bound(std::size_t k, double magnitude, double sizes, double alpha = 1);

// "oneDNN 2.6.3", or what the build lacks.
std::string_view matmul_provider();

// One tile by the provider, in one thread: out = a b in f32. Factors point at the tile's first row and column.
void tile_product(const MatmulShape&, DType from, MatrixView a, MatrixView b, float* out, std::size_t out_stride);

}  // namespace trellis::kernels
