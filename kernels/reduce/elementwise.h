// The plain vector operations: fill, scale, axpy.
#pragma once

#include <cstddef>

#include "kernels/types/dtype.h"
#include "kernels/types/random.h"

namespace trellis::kernels {

struct ElementwiseOptions {
  Rounding rounding = Rounding::nearest;
  Random random = {};  // of stochastic rounding
  int threads = 1;
};

// Every element becomes `value`, rounded to nearest even; integers saturate.
void fill(DType, void* dst, std::size_t n, double value, int threads = 1);

// dst[i] = factor * src[i], in f32 with one rounding of the product to f32 and one to the type; dst may be src.
// f32, bf16 and f16.
void scale(DType, double factor, const void* src, void* dst, std::size_t n, const ElementwiseOptions& = {});

// y[i] = y[i] + factor * x[i], product and sum each rounded to f32, then once to the type. f32, bf16 and f16.
void axpy(DType, double factor, const void* x, void* y, std::size_t n, const ElementwiseOptions& = {});

}  // namespace trellis::kernels
