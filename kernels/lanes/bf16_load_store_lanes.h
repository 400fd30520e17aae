// Vectors of f32 read from and written as bf16, two and more at a time.
#pragma once

#include "kernels/lanes/bf16_pair_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// Reads pair_lanes elements as two vectors of f32: in the order `rows` from any format, in the order `pairs` from bf16
// only.
template <Format f, LaneOrder order>
TRELLIS_INLINE VectorPair<order> read_two(const void* array, std::ptrdiff_t at) {
  if constexpr (order == LaneOrder::pairs) {
    static_assert(f == bf16_format);
    return read_pair(array, at);
  } else {
#if defined(__AVX2__) && !defined(__AVX512F__)
    if constexpr (f == bf16_format) {  // interleaves zeros and codes, within each half of the vector
      const auto codes = (__m256i)load<Q>(array, at, AllLanes{});
      const __m256i halves = _mm256_permute4x64_epi64(codes, 0xD8);
      return {(F)_mm256_unpacklo_epi16(__m256i{}, halves), (F)_mm256_unpackhi_epi16(__m256i{}, halves)};
    }
#endif
    return {read<f>(array, at, AllLanes{}), read<f>(array, at + lanes, AllLanes{})};
  }
}

#if defined(__AVX512BF16__)
// Rounds pairs to nearest by the CPU's own instruction and puts the codes in order. That instruction takes subnormals
// for zero and keeps a NaN's payload: returns false, as codes may be wrong, if there is a zero or a NaN among them.
template <int count>
TRELLIS_INLINE bool convert_pairs(const Pair* pairs, Q* codes) {
  Q places;
  for (int i = 0; i < 2 * lanes; ++i) places[i] = static_cast<std::uint16_t>(i / 2 + (i % 2 == 0 ? 0 : lanes));
  Q doubtful{};
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) {
    const Q apart = (Q)_mm512_cvtne2ps_pbh((__m512)pairs[i].second, (__m512)pairs[i].first);
    codes[i] = (Q)_mm512_permutexvar_epi16((__m512i)places, (__m512i)apart);
    // Twice the code, which drops its sign, less one: at least twice infinity's code only for NaNs and for zeros, which
    // wrap around.
    doubtful = (Q)_mm512_max_epu16((__m512i)doubtful, (__m512i)(apart + apart - 1));
  }
  constexpr std::uint16_t infinity = 0x7F80;
  return _mm512_cmpge_epu16_mask((__m512i)doubtful, _mm512_set1_epi16(static_cast<short>(2 * infinity))) == 0;
}
#endif

// Whether all are numbers or infinities.
template <int count, LaneOrder order>
TRELLIS_INLINE bool no_nan(const VectorPair<order>* twos) {
  Lanes bad{};
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) bad |= nans_in(twos[i].first, twos[i].second);
  return !any(bad);
}

// Rounds and writes two vectors without NaNs, with the random bits for vectors number `vector` and `vector` + 1.
template <Rounding rounding, bool streaming, LaneOrder order, class Random>
TRELLIS_INLINE void write_two(void* array, std::ptrdiff_t at, VectorPair<order> t, const Random& random, int vector) {
  const Q codes = rounded<rounding>(t, random.of(vector), random.of(vector + 1));
  put<streaming>(static_cast<std::uint16_t*>(array) + at, 0, codes, AllLanes{});
}

// Writes `count` pairs of vectors one after the other as bf16. If there is a NaN among them, returns false and writes
// nothing.
template <Rounding rounding, bool streaming, int count, LaneOrder order, class Random>
[[nodiscard]] TRELLIS_INLINE bool write_twos(void* array, const VectorPair<order>* twos, const Random& random) {
#if defined(__AVX512BF16__)
  if constexpr (rounding == Rounding::nearest && order == LaneOrder::pairs)
    if (Q codes[count]; convert_pairs<count>(twos, codes)) [[likely]] {
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) put<streaming>(array, i * pair_lanes, codes[i], AllLanes{});
      return true;
    }
#endif
  if (!no_nan<count>(twos)) [[unlikely]]
    return false;
#pragma GCC unroll 8
  for (int i = 0; i < count; ++i) write_two<rounding, streaming>(array, i * pair_lanes, twos[i], random, 2 * i);
  return true;
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
