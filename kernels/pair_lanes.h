// bf16 by pairs: a 32-bit word holds an element of even place and the odd one after it, and each becomes an f32 by one
// shift or mask. Rounding looks at the dropped and at the kept halves of all elements, 16 bits each, side by side.
#pragma once

#include "kernels/float_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

constexpr std::uint32_t upper = 0xFFFF'0000;
constexpr int pair_lanes = 2 * lanes;  // elements of a vector of words

struct Pair {
  F even, odd;
};

TRELLIS_INLINE Pair read_pair(const void* array, std::ptrdiff_t at) {
  const U words = load<U>(static_cast<const std::uint16_t*>(array) + at, 0, Full{});
  return {as_f(words << 16), as_f(words & upper)};
}

#if defined(__AVX512BW__)
typedef std::uint16_t Q __attribute__((vector_size(4 * lanes)));

// What is kept and what is dropped of 32 elements, in their order.
struct Halves {
  Q kept, dropped;
};
constexpr std::uint32_t odd_places = 0xAAAA'AAAA;
TRELLIS_INLINE Halves halves_of(Pair p) {
  const auto even = (__m512i)p.even, odd = (__m512i)p.odd;
  return {(Q)_mm512_mask_blend_epi16(odd_places, (__m512i)(as_u(p.even) >> 16), odd),
          (Q)_mm512_mask_blend_epi16(odd_places, even, (__m512i)(as_u(p.odd) << 16))};
}
// The places of every second of the 64 halves of two vectors, from `first` on.
TRELLIS_INLINE __m512i every_second(std::uint16_t first) {
  Q places;
  for (int i = 0; i < 2 * lanes; ++i) places[i] = static_cast<std::uint16_t>(2 * i + first);
  return (__m512i)places;
}
TRELLIS_INLINE Halves halves_of(F first, F second) {
  const auto a = (__m512i)first, b = (__m512i)second;
  return {(Q)_mm512_permutex2var_epi16(a, every_second(1), b), (Q)_mm512_permutex2var_epi16(a, every_second(0), b)};
}
// The random bits of two rows, as walk_lanes.h has them in the halves of one vector.
TRELLIS_INLINE U in_order(U random) {
  Q places;
  for (int i = 0; i < lanes; ++i) {
    places[i] = static_cast<std::uint16_t>(2 * i);
    places[i + lanes] = static_cast<std::uint16_t>(2 * i + 1);
  }
  return (U)_mm512_permutexvar_epi16((__m512i)places, (__m512i)random);
}

TRELLIS_INLINE U nearest(Halves h) {
  // Bit 15 of half of dropped + 0x7FFF + the last bit that is kept.
  const Q half = (Q)_mm512_avg_epu16((__m512i)h.dropped, (__m512i)((h.kept & 1) | 0x7FFE));
  return (U)(h.kept + (half >> 15));
}

// Of numbers that are not NaN. random: 16 bits for each element, of an even one (or of one of `first`) in the low half.
template <Rounding rounding>
TRELLIS_INLINE U rounded(Pair p, U random) {
  if constexpr (rounding == Rounding::nearest) return nearest(halves_of(p));
  if constexpr (rounding == Rounding::stochastic)
    p = {as_f(as_u(p.even) + (random & 0xFFFF)), as_f(as_u(p.odd) + (random >> 16))};
  return (U)halves_of(p).kept;
}
template <Rounding rounding>
TRELLIS_INLINE U rounded(F first, F second, U random) {
  if constexpr (rounding == Rounding::nearest) return nearest(halves_of(first, second));
  if constexpr (rounding == Rounding::stochastic) {
    first = as_f(as_u(first) + (random & 0xFFFF));
    second = as_f(as_u(second) + (random >> 16));
  }
  return (U)halves_of(first, second).kept;
}
TRELLIS_INLINE __mmask16 nans_in(F a, F b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q); }
#endif

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
