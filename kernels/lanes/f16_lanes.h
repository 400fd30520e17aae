// f16 by the CPU's own instructions, where it has them: unlike those for bf16 they keep subnormals, and they treat NaNs
// as convert.h says.
#pragma once

#include "kernels/lanes/load_store_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

#if defined(__AVX512F__)
constexpr bool has_half = true;
constexpr __mmask16 every_lane = 0xFFFF;  // GCC 12 warns of its own header in the forms without a mask
TRELLIS_INLINE F widened_half(H h) { return (F)_mm512_maskz_cvtph_ps(every_lane, (__m256i)h); }
template <Rounding rounding>
TRELLIS_INLINE H narrowed_half(F f) {
  constexpr int mode = (rounding == Rounding::truncate ? _MM_FROUND_TO_ZERO : _MM_FROUND_TO_NEAREST_INT);
  return (H)_mm512_maskz_cvtps_ph(every_lane, (__m512)f, mode | _MM_FROUND_NO_EXC);
}
#elif defined(__AVX2__)
constexpr bool has_half = true;
TRELLIS_INLINE F widened_half(H h) { return (F)_mm256_cvtph_ps((__m128i)h); }
template <Rounding rounding>
TRELLIS_INLINE H narrowed_half(F f) {
  constexpr int mode = (rounding == Rounding::truncate ? _MM_FROUND_TO_ZERO : _MM_FROUND_TO_NEAREST_INT);
  return (H)_mm256_cvtps_ph((__m256)f, mode | _MM_FROUND_NO_EXC);
}
#else
constexpr bool has_half = false;
TRELLIS_INLINE F widened_half(H) { return F{}; }
template <Rounding>
TRELLIS_INLINE H narrowed_half(F) {
  return H{};
}
#endif

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
