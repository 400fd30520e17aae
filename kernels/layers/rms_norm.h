// RMSNorm: every row divided by the root of its mean square, times a weight a column.
#pragma once

#include <cstddef>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

struct RmsNormOptions {
  float epsilon = 1e-5F;
  int threads = 1;
};

// y = x * scale * weight, scale = 1 / sqrt(sum x^2 / columns + epsilon), one a row, kept for the gradient unless scales
// is null. x, weight and y are of one type, f32 or bf16; all arithmetic is in f32, the sum in the order of rows.h. y
// may be x. A row with a NaN is NaN; one whose sum of squares passes the largest f32 has scale 0.
void rms_norm(DType, const void* x, const void* weight, void* y, float* scales, std::size_t rows, std::size_t columns,
              const RmsNormOptions& = {});

// dx = scale (g - x scale^2 sum(g x) / columns), g = dy * weight; dx may be dy or x. dweight = sum of dy * x * scale
// over all rows, in runs of column_run; in f32, and left out when null.
void rms_norm_gradient(DType, const void* dy, const void* x, const void* weight, const float* scales, void* dx,
                       float* dweight, std::size_t rows, std::size_t columns, int threads = 1);

}  // namespace trellis::kernels
