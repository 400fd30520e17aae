// Conversion of arrays from one element type to another.
#pragma once

#include <cstddef>

#include "kernels/types/dtype.h"
#include "kernels/types/random.h"

namespace trellis::kernels {

struct CastOptions {
  Rounding rounding = Rounding::nearest;
  Random random = {};  // of stochastic rounding
  int threads = 1;
};

// dst[i] = src[i]. Any floating type to any type, and integers to floating types; not integers to integers. Floats
// become integers to nearest even, saturating, NaN as 0, under every rounding. In place (dst == src) when both types
// have one size. The rest as convert.h says.
void cast(DType from, const void* src, DType to, void* dst, std::size_t n, const CastOptions& = {});

}  // namespace trellis::kernels
