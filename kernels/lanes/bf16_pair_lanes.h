// bf16 two vectors at a time, in pairs or in rows. A pair is a vector of 32-bit words, each of which holds an element
// of even place and the odd one after it, and each becomes an f32 by one shift or mask. Rows are two vectors of
// elements in a row.
#pragma once

#include "kernels/lanes/compare_lanes.h"
#include "kernels/lanes/float_load_store_lanes.h"
#include "kernels/lanes/random_stream_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

constexpr std::uint32_t upper = 0xFFFF'0000;
constexpr int pair_lanes = 2 * lanes;  // elements of two vectors

// Holds pair_lanes elements as two vectors: the even and the odd ones, or the first half and the second.
template <LaneOrder order>
struct VectorPair {
  F first, second;
};
using Pair = VectorPair<LaneOrder::pairs>;
using Rows2 = VectorPair<LaneOrder::rows>;

TRELLIS_INLINE Pair read_pair(const void* array, std::ptrdiff_t at) {
  const U words = load<U>(static_cast<const std::uint16_t*>(array) + at, 0, AllLanes{});
  return {as_f(words << 16), as_f(words & upper)};
}

#if defined(__AVX512BW__)
constexpr std::uint32_t odd_places = 0xAAAA'AAAA;
// The indices of every second 16-bit half of two vectors, from `first` on.
TRELLIS_INLINE __m512i every_second(std::uint16_t first) {
  Q places;
  for (int i = 0; i < 2 * lanes; ++i) places[i] = static_cast<std::uint16_t>(2 * i + first);
  return (__m512i)places;
}
#endif

// The upper halves of all lanes, in the elements' order: what bf16 keeps.
TRELLIS_INLINE Q upper_halves(Pair p) {
#if defined(__AVX512BW__)
  return (Q)_mm512_mask_blend_epi16(odd_places, (__m512i)(as_u(p.first) >> 16), (__m512i)p.second);
#elif defined(__AVX2__)
  return (Q)_mm256_blend_epi16((__m256i)(as_u(p.first) >> 16), (__m256i)p.second, 0xAA);
#else
  return (Q)((as_u(p.first) >> 16) | (as_u(p.second) & upper));
#endif
}
TRELLIS_INLINE Q upper_halves(Rows2 r) {
#if defined(__AVX512BW__)
  return (Q)_mm512_permutex2var_epi16((__m512i)r.first, every_second(1), (__m512i)r.second);
#elif defined(__AVX2__)
  const __m256i halves = _mm256_packus_epi32((__m256i)(as_u(r.first) >> 16), (__m256i)(as_u(r.second) >> 16));
  return (Q)_mm256_permute4x64_epi64(halves, 0xD8);
#elif defined(__SSE2__)
  return (Q)_mm_packs_epi32((__m128i)((I)r.first >> 16), (__m128i)((I)r.second >> 16));
#else
  return __builtin_shufflevector((Q)r.first, (Q)r.second, 1, 3, 5, 7, 9, 11, 13, 15);
#endif
}

// Rounds numbers that are not NaN, so that their upper halves are the nearest bf16; the lower halves mean nothing.
TRELLIS_INLINE F to_nearest(F f) { return as_f(as_u(f) + (((as_u(f) >> 16) & 1) + 0x7FFF)); }

#if defined(__SSE2__)
// Rounds to nearest even: adds the carry of dropped + 0x7FFF + the last kept bit, which is bit 15 of half that sum.
TRELLIS_INLINE Q nearest(Q kept, Q dropped) {
  const Q most = (kept & 1) | 0x7FFE;
#if defined(__AVX512BW__)
  const Q half = (Q)_mm512_avg_epu16((__m512i)dropped, (__m512i)most);
#elif defined(__AVX2__)
  const Q half = (Q)_mm256_avg_epu16((__m256i)dropped, (__m256i)most);
#else
  const Q half = (Q)_mm_avg_epu16((__m128i)dropped, (__m128i)most);
#endif
  return kept + (half >> 15);
}
#endif
TRELLIS_INLINE Q nearest(Pair p) {
#if defined(__AVX512BW__)
  const auto lower = (Q)_mm512_mask_blend_epi16(odd_places, (__m512i)p.first, (__m512i)(as_u(p.second) << 16));
  return nearest(upper_halves(p), lower);
#elif defined(__AVX2__)
  return nearest(upper_halves(p), (Q)_mm256_blend_epi16((__m256i)p.first, (__m256i)(as_u(p.second) << 16), 0xAA));
#elif defined(__SSE2__)
  return nearest(upper_halves(p), (Q)((as_u(p.first) & 0xFFFF) | (as_u(p.second) << 16)));
#else
  return upper_halves({to_nearest(p.first), to_nearest(p.second)});
#endif
}
TRELLIS_INLINE Q nearest(Rows2 r) {
#if defined(__AVX512BW__)
  const auto lower = (Q)_mm512_permutex2var_epi16((__m512i)r.first, every_second(0), (__m512i)r.second);
  return nearest(upper_halves(r), lower);
#else
  return upper_halves(Rows2{to_nearest(r.first), to_nearest(r.second)});
#endif
}

// Rounds numbers that are not NaN. `first` and `second` are random words as RandomStream::of gives them.
template <Rounding rounding, LaneOrder order>
TRELLIS_INLINE Q rounded(VectorPair<order> t, U first, U second) {
  if constexpr (rounding == Rounding::nearest) return nearest(t);
  if constexpr (rounding == Rounding::stochastic) t = {as_f(as_u(t.first) + first), as_f(as_u(t.second) + second)};
  return upper_halves(t);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
