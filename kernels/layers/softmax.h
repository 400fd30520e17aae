// Softmax of every row, with the scale and the causal mask of attention.
#pragma once

#include <cstddef>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

struct SoftmaxOptions {
  float scale = 1;
  // 0: no mask. Otherwise the rows come in matrices of so many queries over `columns` keys, the last query being the
  // last key's: query q sees the first columns - queries + q + 1 keys, and has 0 for the rest, which are not read.
  std::size_t queries = 0;
  int threads = 1;
};

// y = e^(t - m) / sum e^(t - m), t = scale x, m the largest t of the row; so no term overflows. x and y are of one
// type, f32 or bf16; all arithmetic is in f32, the sum in the order of rows.h, and multiplied in as 1 / sum. y may be
// x. A row whose unmasked keys have a NaN or +infinity, or nothing but -infinity, becomes NaN at all of these keys.
void softmax(DType, const void* x, void* y, std::size_t rows, std::size_t columns, const SoftmaxOptions& = {});

// dx = scale y (dy - sum dy y), y being what softmax gave; dx may be dy or y.
void softmax_gradient(DType, const void* dy, const void* y, void* dx, std::size_t rows, std::size_t columns,
                      const SoftmaxOptions& = {});

// What the kernels' settings point to.
struct SoftmaxSettings {
  float scale;
  std::size_t queries;
};

}  // namespace trellis::kernels
