// Vectors to and from memory: whole or in part, through the caches or past them.
#pragma once

#include "kernels/lanes/vector_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// Which lanes of a vector take part: all, or those from `from` up to `to`.
struct AllLanes {};
struct LaneRange {
  int from, to;
};

#if defined(__AVX512BW__)
TRELLIS_INLINE std::uint64_t mask_of(LaneRange p) {
  return p.from >= p.to ? 0 : (~std::uint64_t{0} >> (64 - p.to)) & (~std::uint64_t{0} << p.from);
}
#endif

// Lane 0 stands for element `at` of the array; lanes that take no part are zero.
template <class V>
TRELLIS_INLINE V load(const void* array, std::ptrdiff_t at, AllLanes) {
  V v;
  std::memcpy(&v, static_cast<const char*>(array) + at * static_cast<std::ptrdiff_t>(sizeof(v[0])), sizeof v);
  return v;
}
template <class V>
TRELLIS_INLINE V load(const void* array, std::ptrdiff_t at, LaneRange p) {
  V v{};
  constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(v[0]));
#if defined(__AVX512BW__)
  const char* const from = static_cast<const char*>(array) + at * size;
  const std::uint64_t mask = mask_of(p);
  if constexpr (sizeof v == 64 && size == 4) return (V)_mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), from);
  if constexpr (sizeof v == 64 && size == 2) return (V)_mm512_maskz_loadu_epi16(static_cast<__mmask32>(mask), from);
  if constexpr (sizeof v == 64 && size == 1) return (V)_mm512_maskz_loadu_epi8(mask, from);
  if constexpr (sizeof v == 32 && size == 2) return (V)_mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), from);
  if constexpr (sizeof v == 16 && size == 1) return (V)_mm_maskz_loadu_epi8(static_cast<__mmask16>(mask), from);
#endif
  for (int i = p.from; i < p.to; ++i)
    std::memcpy(reinterpret_cast<char*>(&v) + i * size, static_cast<const char*>(array) + (at + i) * size,
                sizeof(v[0]));
  return v;
}

// streaming: past the caches; the address must then be a multiple of the vector's size.
template <bool streaming, class V>
TRELLIS_INLINE void put(void* array, std::ptrdiff_t at, V v, AllLanes) {
  char* const to = static_cast<char*>(array) + at * static_cast<std::ptrdiff_t>(sizeof(v[0]));
#if defined(__SSE2__)
  if constexpr (streaming) {
#if defined(__AVX512F__)
    if constexpr (sizeof v == 64) return _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)v);
#endif
#if defined(__AVX2__)
    if constexpr (sizeof v == 32) return _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)v);
#endif
    if constexpr (sizeof v == 16) return _mm_stream_si128(reinterpret_cast<__m128i*>(to), (__m128i)v);
  }
#endif
  std::memcpy(to, &v, sizeof v);
}
template <bool streaming, class V>
TRELLIS_INLINE void put(void* array, std::ptrdiff_t at, V v, LaneRange p) {
  constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(v[0]));
#if defined(__AVX512BW__)
  char* const to = static_cast<char*>(array) + at * size;
  const std::uint64_t mask = mask_of(p);
  if constexpr (sizeof v == 64 && size == 4)
    return _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(mask), (__m512i)v);
  if constexpr (sizeof v == 64 && size == 2)
    return _mm512_mask_storeu_epi16(to, static_cast<__mmask32>(mask), (__m512i)v);
  if constexpr (sizeof v == 64 && size == 1) return _mm512_mask_storeu_epi8(to, mask, (__m512i)v);
  if constexpr (sizeof v == 32 && size == 2)
    return _mm256_mask_storeu_epi16(to, static_cast<__mmask16>(mask), (__m256i)v);
  if constexpr (sizeof v == 16 && size == 1) return _mm_mask_storeu_epi8(to, static_cast<__mmask16>(mask), (__m128i)v);
#endif
  for (int i = p.from; i < p.to; ++i)
    std::memcpy(static_cast<char*>(array) + (at + i) * size, reinterpret_cast<const char*>(&v) + i * size,
                sizeof(v[0]));
}

// Prefetches what a walk will soon read: with much arithmetic between loads, the CPU itself prefetches too late. If
// this went farther ahead, the CPU's prefetchers would see streams that don't exist. It is harmless past the end of an
// array.
template <int bytes>
TRELLIS_INLINE void ask_ahead(const void* at) {
  constexpr int ahead = 512;
#pragma GCC unroll 8
  for (int line = 0; line < bytes; line += 64) __builtin_prefetch(static_cast<const char*>(at) + ahead + line, 0, 3);
}

// How many elements lie before an array's first address that is a multiple of 64.
TRELLIS_INLINE std::size_t to_alignment(const void* array, std::size_t size) {
  return (64 - reinterpret_cast<std::uintptr_t>(array) % 64) % 64 / size;
}

// Orders streaming stores, which go past the caches, before all later stores, so that other threads see them in order.
TRELLIS_INLINE void fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
