// Arrays of floating types as vectors of f32.
#pragma once

#include "kernels/narrow_lanes.h"
#include "kernels/widen_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// How codes of a format lie in memory.
template <Format f>
constexpr auto codes_of() {
  if constexpr (f.bits() > 16)
    return U{};
  else if constexpr (f.bits() > 8)
    return H{};
  else
    return B{};
}
template <Format f>
using Codes = decltype(codes_of<f>());

// GCC 12 makes four instructions of the conversion that AVX-512 has one for.
template <class Code>
TRELLIS_INLINE U in_lanes(Code codes) {
#if defined(__AVX512F__)
  if constexpr (sizeof codes == 32) return (U)_mm512_maskz_cvtepu16_epi32(0xFFFF, (__m256i)codes);
#endif
  return __builtin_convertvector(codes, U);
}

#if defined(__AVX512BW__)
// Each code to the upper half of a lane, by one permutation.
TRELLIS_INLINE F widened_bf16(H codes) {
  typedef std::uint16_t Halves __attribute__((vector_size(4 * lanes)));
  Halves places;
  for (int i = 0; i < 2 * lanes; ++i) places[i] = static_cast<std::uint16_t>(i / 2);
  const __m512i wide = _mm512_castsi256_si512((__m256i)codes);
  return (F)_mm512_maskz_permutexvar_epi16(0xAAAA'AAAA, (__m512i)places, wide);
}
#endif

template <Format f, class Which>
TRELLIS_INLINE F read(const void* array, std::ptrdiff_t at, Which which) {
  const Codes<f> codes = load<Codes<f>>(array, at, which);
#if defined(__AVX512BW__)
  if constexpr (f == bf16_format) return widened_bf16(codes);
#endif
  if constexpr (f == f16_format && has_half)
    return widened_half(codes);
  else
    return widened<f>(in_lanes(codes));
}

template <Format f, Rounding rounding, bool streaming, Nans nans = Nans::kept, class Which>
TRELLIS_INLINE void write(void* array, std::ptrdiff_t at, F value, U random, Which which) {
  if constexpr (f == f16_format && has_half && rounding != Rounding::stochastic)
    put<streaming>(array, at, narrowed_half<rounding>(nans == Nans::kept ? value : canonical(value)), which);
  else
    put<streaming>(array, at, __builtin_convertvector((narrowed<f, rounding, nans>(value, random)), Codes<f>), which);
}

// What arithmetic made, written with its NaNs canonical.
template <Format f, Rounding rounding, bool streaming, class Which>
TRELLIS_INLINE void write_result(void* array, std::ptrdiff_t at, F value, U random, Which which) {
  write<f, rounding, streaming, Nans::canonical>(array, at, value, random, which);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
