// Comparisons for which GCC 12 makes more instructions than the CPU needs.
#pragma once

#include "kernels/lanes/vector_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

TRELLIS_INLINE I smaller(I a, I b) {
#if defined(__AVX512F__)
  return (I)_mm512_maskz_min_epi32(0xFFFF, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (I)_mm256_min_epi32((__m256i)a, (__m256i)b);
#else
  return a < b ? a : b;
#endif
}
TRELLIS_INLINE I larger(I a, I b) {
#if defined(__AVX512F__)
  return (I)_mm512_maskz_max_epi32(0xFFFF, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (I)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
  return a > b ? a : b;
#endif
}

TRELLIS_INLINE Q larger_halves(Q a, Q b) {
#if defined(__AVX512BW__)
  return (Q)_mm512_max_epu16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
  return (Q)_mm256_max_epu16((__m256i)a, (__m256i)b);
#else
  return a > b ? a : b;
#endif
}

// The lanes in which a or b is a NaN, and whether there are any.
#if defined(__AVX512F__)
using Lanes = __mmask16;
TRELLIS_INLINE Lanes nans_in(F a, F b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q); }
TRELLIS_INLINE bool any(Lanes l) { return l != 0; }
#else
using Lanes = I;
TRELLIS_INLINE Lanes nans_in(F a, F b) {
#if defined(__AVX2__)
  return (I)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
#elif defined(__SSE2__)
  return (I)_mm_cmpunord_ps((__m128)a, (__m128)b);
#else
  return (a != a) | (b != b);
#endif
}
TRELLIS_INLINE bool any(Lanes l) {
#if defined(__AVX2__)
  return _mm256_movemask_ps((__m256)l) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_ps((__m128)l) != 0;
#else
  const W words = (W)l;
  return (words[0] | words[1]) != 0;
#endif
}
#endif

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
