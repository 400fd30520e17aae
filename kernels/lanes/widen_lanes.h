// Codes of floating formats to f32, in vectors, as decode does it one by one.
#pragma once

#include "kernels/lanes/f16_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

constexpr std::uint32_t no_sign = 0x7FFF'FFFF;
constexpr std::uint32_t canonical_nan = 0x7FC0'0000;

// The one NaN that arithmetic gives, whatever the CPU's own habit.
TRELLIS_INLINE F canonical(F f) { return select(f != f, as_f(u_all(canonical_nan)), f); }

template <Format f>
TRELLIS_INLINE F widened_small(U code) {
  constexpr int up = 23 - f.mantissa_bits;
  constexpr float least = __builtin_bit_cast(float, (128U - f.bias() - f.mantissa_bits) << 23);
  const U size = code & (f.sign() - 1);
  const F tiny = __builtin_convertvector((I)size, F) * least;
  U wide = select(size < (1U << f.mantissa_bits), as_u(tiny), (size << up) + ((127U - f.bias()) << 23));
  if constexpr (f.infinities) {
    wide = select(size >= f.infinity(), (size << up) | 0x7F80'0000U, wide);
    wide = select(size > f.infinity(), wide | 0x40'0000U, wide);
  } else {
    wide = select(size == f.nan(), u_all(no_sign & ~((1U << up) - 1)), wide);
  }
  return as_f(wide | ((code & f.sign()) << (32 - f.bits())));
}

template <Format f>
TRELLIS_INLINE F widened(U code) {
  if constexpr (f.bits() == 32)
    return as_f(code);
  else if constexpr (f == tf32_format)
    return as_f(code & ~0x1FFFU);
  else if constexpr (f == bf16_format)
    return as_f(code << 16);
  else
    return widened_small<f>(code);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
