// f32 to the formats of 8 bits, to nearest, four vectors at a time.
#pragma once

#include "kernels/lanes/float_load_store_lanes.h"
#include "kernels/lanes/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// Narrows four vectors of codes below 256 to bytes, in order.
TRELLIS_INLINE Bytes bytes_of(const U* codes) {
#if defined(__AVX512F__)
  typedef std::uint8_t Quarter __attribute__((vector_size(16)));
  Bytes all;
  for (int v = 0; v < 4; ++v) {
    const auto part = (Quarter)_mm512_maskz_cvtepi32_epi8(0xFFFF, (__m512i)codes[v]);
    std::memcpy(reinterpret_cast<char*>(&all) + 16 * v, &part, sizeof part);
  }
  return all;
#elif defined(__AVX2__)
  const __m256i low = _mm256_packus_epi32((__m256i)codes[0], (__m256i)codes[1]);
  const __m256i high = _mm256_packus_epi32((__m256i)codes[2], (__m256i)codes[3]);
  const __m256i places = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  return (Bytes)_mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), places);
#elif defined(__SSE2__)
  const __m128i low = _mm_packs_epi32((__m128i)codes[0], (__m128i)codes[1]);
  return (Bytes)_mm_packus_epi16(low, _mm_packs_epi32((__m128i)codes[2], (__m128i)codes[3]));
#else
  const Q low = __builtin_shufflevector((Q)codes[0], (Q)codes[1], 0, 2, 4, 6, 8, 10, 12, 14);
  const Q high = __builtin_shufflevector((Q)codes[2], (Q)codes[3], 0, 2, 4, 6, 8, 10, 12, 14);
  return __builtin_shufflevector((Bytes)low, (Bytes)high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
#endif
}

// Rounds four vectors of numbers to nearest; the result is one vector of codes.
template <Format f>
TRELLIS_INLINE Bytes codes_of_four(const F* values) {
  U codes[4];
#pragma GCC unroll 4
  for (int v = 0; v < 4; ++v) codes[v] = nearest_size<f>(as_u(values[v])) | ((as_u(values[v]) >> 24) & 0x80);
  return bytes_of(codes);
}

template <DType to>
void cast_to_f8(const KernelArguments& s) {
  constexpr Format f = format_of(to);
  constexpr int size = 64, turn = 4 * lanes;
  const char* const src = static_cast<const char*>(s.reads[0]);
  char* const dst = static_cast<char*>(s.writes[0]);
  const auto step = [=](std::ptrdiff_t at, auto which, U) __attribute__((always_inline)) {
    write<f, Rounding::nearest, false>(dst, at, read<f32_format>(src, at, which), U{}, which);
  };
  const auto make_block = [&](auto streams) __attribute__((always_inline)) {
    return [ =, &s ](std::ptrdiff_t begin) __attribute__((always_inline)) {
#pragma GCC unroll 4
      for (std::ptrdiff_t at = begin; at < begin + size; at += turn) {
        const char* const from = src + at * 4;
        F values[4];
#pragma GCC unroll 4
        for (int v = 0; v < 4; ++v) values[v] = load<F>(from, v * lanes, AllLanes{});
        if (any(nans_in(values[0], values[1]) | nans_in(values[2], values[3]))) [[unlikely]]
          walk_range<4, NoRandomBits>(s, at, at + turn, step);
        else
          put<decltype(streams)::value>(dst, at, codes_of_four<f>(values), AllLanes{});
      }
    };
  };
  walk_blocks<4, false, size>(s, 1, make_block, step);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
