// Pairs and rows of f32 written as bf16, many at a time.
#pragma once

#include "kernels/bits_lanes.h"
#include "kernels/pair_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// Writes 32 values, in order; random as the rows of walk_lanes.h have it.
#if defined(__AVX512BW__)
template <Rounding rounding, bool streaming, Nans nans>
TRELLIS_INLINE void write_two_rows(void* array, F first, F second, U random) {
  if (nans_in(first, second) == 0) [[likely]]
    return put<streaming>(array, 0, rounded<rounding>(first, second, random), Full{});
  write<bf16_format, rounding, streaming, nans>(array, 0, first, random & 0xFFFF, Full{});
  write<bf16_format, rounding, streaming, nans>(array, lanes, second, random >> 16, Full{});
}
// Twice as many to random bits, with one look for NaN.
struct Rows {
  F first, second;
};
template <bool streaming, Nans nans>
TRELLIS_INLINE void write_four_rows(char* array, Rows a, Rows b, const NextBits& bits) {
  constexpr Rounding rounding = Rounding::stochastic;
  if (_kortestz_mask16_u8(nans_in(a.first, a.second), nans_in(b.first, b.second)) != 0) [[likely]] {
    put<streaming>(array, 0, rounded<rounding>(a.first, a.second, bits.two_rows(false)), Full{});
    put<streaming>(array, lanes, rounded<rounding>(b.first, b.second, bits.two_rows(true)), Full{});
    return;
  }
  write_two_rows<rounding, streaming, nans>(array, a.first, a.second, bits.two_rows(false));
  write_two_rows<rounding, streaming, nans>(array + 64, b.first, b.second, bits.two_rows(true));
}
#endif

#if defined(__AVX512BF16__)
// Codes to nearest of pairs, in order, by the CPU's own instruction; false when they may be wrong, as it takes
// subnormals for zero and keeps the payload of NaN: when there is a zero or a NaN among them.
template <int count>
TRELLIS_INLINE bool convert_pairs(const Pair* pairs, Q* codes) {
  Q places;
  for (int i = 0; i < 2 * lanes; ++i) places[i] = static_cast<std::uint16_t>(i / 2 + (i % 2 == 0 ? 0 : lanes));
  Q doubtful{};
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) {
    const Q apart = (Q)_mm512_cvtne2ps_pbh((__m512)pairs[i].odd, (__m512)pairs[i].even);
    codes[i] = (Q)_mm512_permutexvar_epi16((__m512i)places, (__m512i)apart);
    // Twice the code, without its sign, less one: zero becomes the largest, and infinity stays below all NaNs.
    doubtful = (Q)_mm512_max_epu16((__m512i)doubtful, (__m512i)(apart + apart - 1));
  }
  constexpr std::uint16_t infinity = 0x7F80;
  return _mm512_cmpge_epu16_mask((__m512i)doubtful, _mm512_set1_epi16(static_cast<short>(2 * infinity))) == 0;
}
#endif

// Writes pairs one after the other. random: 16 bits for each element, in the elements' order; only of stochastic
// rounding.
template <Rounding rounding, bool streaming, Nans nans, int count>
TRELLIS_INLINE void write_pairs(void* array, const Pair* pairs, const U* random) {
#if defined(__AVX512BF16__)
  if constexpr (rounding == Rounding::nearest)
    if (Q codes[count]; convert_pairs<count>(pairs, codes)) [[likely]] {
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) put<streaming>(array, i * lanes, (U)codes[i], Full{});
      return;
    }
#endif
#if defined(__AVX512BW__)
  unsigned bad = 0;
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) bad |= nans_in(pairs[i].even, pairs[i].odd);
  if (bad == 0) [[likely]] {
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) put<streaming>(array, i * lanes, rounded<rounding>(pairs[i], random[i]), Full{});
    return;
  }
#endif
  for (int i = 0; i < count; ++i) {
    const U even = narrowed<bf16_format, rounding, nans>(pairs[i].even, random[i] & 0xFFFF);
    const U odd = narrowed<bf16_format, rounding, nans>(pairs[i].odd, random[i] >> 16);
    put<streaming>(array, i * lanes, even | odd << 16, Full{});
  }
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
