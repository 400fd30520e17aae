// Vectors of 32-bit lanes, as wide as the set of instructions that this file is compiled for. Only the *_lanes.h files
// include it; the build compiles each once for each set. All of it has internal linkage, so that the linker cannot
// take code for one set for another's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/dispatch/registry.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#ifndef TRELLIS_ISA
#define TRELLIS_ISA vec128
#endif
#define TRELLIS_INLINE [[gnu::always_inline]] inline
// Attributes of a mutable lambda: compilers do not agree on the order of the two words.
#ifdef __clang__
#define TRELLIS_INLINE_MUTABLE __attribute__((always_inline)) mutable
#else
#define TRELLIS_INLINE_MUTABLE mutable __attribute__((always_inline))
#endif

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
typedef std::uint64_t W __attribute__((vector_size(4 * lanes)));  // half as many elements
typedef std::uint16_t Q __attribute__((vector_size(4 * lanes)));  // twice as many elements
typedef std::uint16_t H __attribute__((vector_size(2 * lanes)));
typedef std::uint8_t B __attribute__((vector_size(lanes)));
typedef std::uint8_t Bytes __attribute__((vector_size(4 * lanes)));  // four times as many elements

TRELLIS_INLINE F as_f(U u) { return (F)u; }
TRELLIS_INLINE U as_u(F f) { return (U)f; }
TRELLIS_INLINE U u_all(std::uint32_t v) { return v - U{}; }
TRELLIS_INLINE F f_all(float v) { return as_f(u_all(__builtin_bit_cast(std::uint32_t, v))); }
TRELLIS_INLINE U lane_numbers() {
  U numbers{};
  for (int i = 0; i < lanes; ++i) numbers[i] = static_cast<std::uint32_t>(i);
  return numbers;
}
TRELLIS_INLINE U select(I mask, U yes, U no) { return mask ? yes : no; }
TRELLIS_INLINE F select(I mask, F yes, F no) { return mask ? yes : no; }

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
