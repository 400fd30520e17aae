// Exact conversions of single values: the truth that the fast twins are held against. Subnormals are kept, a NaN stays
// a NaN with its sign and the upper part of its payload, made quiet.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

// The value of a code, exactly; what lies above the format's bits is ignored.
double decode(Format, std::uint32_t code);

// The code for a value. Nearest: ties to even; beyond the largest finite value by half a step or more is infinity. In
// f8e4m3fn, which has no infinity, half a step beyond is a tie and gives the largest value, and more gives NaN.
// Truncate: towards zero, so a finite value stays finite. Stochastic: up in magnitude exactly when the dropped part, in
// units of 2^-bits of a step, plus `random` (that many bits, uniform) reaches a whole step; beyond the largest finite
// value the next code is infinity, reached in proportion.
std::uint32_t encode(Format, double, Rounding, std::uint32_t random = 0, int bits = 32);

// Reads an element of any type from memory as a double, or writes a double to it. 64-bit integers beyond 2^53 are
// rounded to odd, so that a second, narrower rounding is right. Floats become integers to nearest even and saturate; a
// NaN becomes 0.
double load(DType, const void* at);
void store(DType, void* at, double, Rounding = Rounding::nearest, std::uint32_t random = 0);

inline float widen_bf16(std::uint16_t code) { return std::bit_cast<float>(std::uint32_t{code} << 16); }

// Rounds by integer arithmetic: the CPU's own instruction takes subnormals for zero.
inline std::uint16_t bf16_nearest(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((u >> 16) | 0x40);
  return static_cast<std::uint16_t>((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}

inline std::uint16_t bf16_truncated(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((u >> 16) | (value != value ? 0x40 : 0));
}

// random: 16 uniform bits. P(up in magnitude) is the dropped part / 65536, exactly.
inline std::uint16_t bf16_stochastic(float value, std::uint32_t random) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  if (value != value) return static_cast<std::uint16_t>((u >> 16) | 0x40);
  return static_cast<std::uint16_t>((u + random) >> 16);
}

}  // namespace trellis::kernels
