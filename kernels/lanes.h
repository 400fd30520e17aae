// Vectors of 32-bit lanes, as wide as the set of instructions that this file is compiled for. Only the *_lanes.h files
// include it; the build compiles each once a set. All of it has internal linkage, so that no code for one set can be
// taken for another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/registry.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef TRELLIS_ISA
#define TRELLIS_ISA vec128
#endif
#define TRELLIS_INLINE [[gnu::always_inline]] inline

namespace trellis::kernels::TRELLIS_ISA {
namespace {

constexpr Isa this_isa = Isa::TRELLIS_ISA;

#if defined(__AVX512F__)
constexpr int lanes = 16;
#elif defined(__AVX2__)
constexpr int lanes = 8;
#else
constexpr int lanes = 4;
#endif

typedef float F __attribute__((vector_size(4 * lanes)));
typedef std::uint32_t U __attribute__((vector_size(4 * lanes)));
typedef std::int32_t I __attribute__((vector_size(4 * lanes)));
typedef std::uint64_t W __attribute__((vector_size(4 * lanes)));  // half as many
typedef std::uint16_t H __attribute__((vector_size(2 * lanes)));
typedef std::uint8_t B __attribute__((vector_size(lanes)));

// Which lanes of a vector take part: all, or those from `from` up to `to`.
struct Full {};
struct Part {
  int from, to;
};

TRELLIS_INLINE F as_f(U u) { return (F)u; }
TRELLIS_INLINE U as_u(F f) { return (U)f; }
TRELLIS_INLINE U u_all(std::uint32_t v) { return v - U{}; }
TRELLIS_INLINE F f_all(float v) { return as_f(u_all(__builtin_bit_cast(std::uint32_t, v))); }
TRELLIS_INLINE U select(I mask, U yes, U no) { return mask ? yes : no; }
TRELLIS_INLINE F select(I mask, F yes, F no) { return mask ? yes : no; }

// Lane 0 stands for element `at` of the array; lanes that take no part are zero.
template <class V>
TRELLIS_INLINE V load(const void* array, std::ptrdiff_t at, Full) {
  V v;
  std::memcpy(&v, static_cast<const char*>(array) + at * static_cast<std::ptrdiff_t>(sizeof(v[0])), sizeof v);
  return v;
}
template <class V>
TRELLIS_INLINE V load(const void* array, std::ptrdiff_t at, Part p) {
  V v{};
  constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(v[0]));
  for (int i = p.from; i < p.to; ++i)
    std::memcpy(reinterpret_cast<char*>(&v) + i * size, static_cast<const char*>(array) + (at + i) * size,
                sizeof(v[0]));
  return v;
}

// streaming: past the caches; the address must then be a multiple of the vector's size.
template <bool streaming, class V>
TRELLIS_INLINE void put(void* array, std::ptrdiff_t at, V v, Full) {
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
TRELLIS_INLINE void put(void* array, std::ptrdiff_t at, V v, Part p) {
  constexpr auto size = static_cast<std::ptrdiff_t>(sizeof(v[0]));
  for (int i = p.from; i < p.to; ++i)
    std::memcpy(static_cast<char*>(array) + (at + i) * size, reinterpret_cast<const char*>(&v) + i * size,
                sizeof(v[0]));
}

// Elements before an array's first multiple of 64 bytes.
TRELLIS_INLINE std::size_t to_alignment(const void* array, std::size_t size) {
  return (64 - reinterpret_cast<std::uintptr_t>(array) % 64) % 64 / size;
}

// Orders the stores past the caches before what other threads may see next.
TRELLIS_INLINE void fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
