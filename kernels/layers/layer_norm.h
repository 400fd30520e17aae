// LayerNorm: every row less its mean, divided by its standard deviation, times a weight and plus a bias a column.
#pragma once

#include <cstddef>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

struct LayerNormOptions {
  float epsilon = 1e-5F;
  int threads = 1;
};

// A mean and a scale for each row, kept for the gradient.
struct LayerNormStatistics {
  float* means = nullptr;
  float* scales = nullptr;
};

// y = (x - mean) scale weight + bias, scale = 1 / sqrt(sum (x - mean)^2 / columns + epsilon); the squares are summed in
// a second pass, so a large mean costs no accuracy. x, weight, bias and y are of one type, f32 or bf16; all arithmetic
// is in f32, sums in the order of rows.h. y may be x. Null pointers in `kept` are not written to.
void layer_norm(DType, const void* x, const void* weight, const void* bias, void* y, LayerNormStatistics kept,
                std::size_t rows, std::size_t columns, const LayerNormOptions& = {});

// dx = scale (g - sum g / columns - h sum(g h) / columns), h = (x - mean) scale, g = dy * weight; dx may be dy or x.
// dweight = sum dy h and dbias = sum dy over all rows, in runs of column_run; in f32, left out when both are null.
void layer_norm_gradient(DType, const void* dy, const void* x, const void* weight, const LayerNormStatistics& kept,
                         void* dx, float* dweight, float* dbias, std::size_t rows, std::size_t columns,
                         int threads = 1);

}  // namespace trellis::kernels
