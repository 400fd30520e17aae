// Arrays of floating types as vectors of f32.
#pragma once

#include "kernels/lanes/narrow_lanes.h"
#include "kernels/lanes/widen_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// The vector type of a format's codes as they lie in memory.
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

// Codes to 32-bit lanes and back. GCC 12 makes several instructions of a conversion that the CPU has one or two for.
template <class Code>
TRELLIS_INLINE U in_lanes(Code codes) {
#if defined(__AVX512F__)
  if constexpr (sizeof codes == 32) return (U)_mm512_maskz_cvtepu16_epi32(0xFFFF, (__m256i)codes);
#elif defined(__AVX2__)
  if constexpr (sizeof codes == 16) return (U)_mm256_cvtepu16_epi32((__m128i)codes);
  if constexpr (sizeof codes == 8) return (U)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)codes));
#endif
  return __builtin_convertvector(codes, U);
}
template <class Code>
TRELLIS_INLINE Code side_by_side(U codes) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (sizeof(Code) < sizeof codes) {
    const __m128i low = _mm256_castsi256_si128((__m256i)codes), high = _mm256_extracti128_si256((__m256i)codes, 1);
    const __m128i halves = _mm_packus_epi32(low, high);
    if constexpr (sizeof(Code) == 16) return (Code)halves;
    if constexpr (sizeof(Code) == 8) return (Code)_mm_cvtsi128_si64(_mm_packus_epi16(halves, halves));
  }
#endif
  return __builtin_convertvector(codes, Code);
}

#if defined(__AVX512BW__)
// Widens bf16 to f32: moves each code to the upper half of a lane, by one permutation.
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

template <Format f, Rounding rounding, bool streaming, NanPolicy nans = NanPolicy::kept, class Which>
TRELLIS_INLINE void write(void* array, std::ptrdiff_t at, F value, U random, Which which) {
  if constexpr (f == f16_format && has_half && rounding != Rounding::stochastic)
    put<streaming>(array, at, narrowed_half<rounding>(nans == NanPolicy::kept ? value : canonical(value)), which);
  else
    put<streaming>(array, at, side_by_side<Codes<f>>(narrowed<f, rounding, nans>(value, random)), which);
}

// Writes a result of arithmetic, with canonical NaNs.
template <Format f, Rounding rounding, bool streaming, class Which>
TRELLIS_INLINE void write_result(void* array, std::ptrdiff_t at, F value, U random, Which which) {
  write<f, rounding, streaming, NanPolicy::canonical>(array, at, value, random, which);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
