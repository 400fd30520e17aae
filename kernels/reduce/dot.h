// Dot product and sum of squares: the same bits whatever the threads, the vector width, the machine.
#pragma once

#include <cstddef>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

// The order of additions, all in f64, is part of the result's meaning. Parts of 16384 elements; in a part, 32 sums, sum
// j over the elements j, j + 32, ... of the part in this order; then sum j += sum j + width for widths 16, 8, 4, 2, 1;
// then the parts one by one. A product of two elements is exact in f64, so that a fused multiply-add changes nothing,
// and no sum of elements that are finite overflows. NaNs that come out are all the one quiet positive NaN.
//
// f32, bf16 and f16; the arrays may overlap.
double dot(DType, const void* x, const void* y, std::size_t n, int threads = 1);
double sum_of_squares(DType, const void* x, std::size_t n, int threads = 1);

inline constexpr std::size_t dot_sums = 32;  // in a part

}  // namespace trellis::kernels
