// cast: f32 to and from each floating type in vectors; the other pairs through f32, which holds them all exactly.
#pragma once

#include <array>

#include "kernels/lanes/bf16_load_store_lanes.h"
#include "kernels/lanes/f8_lanes.h"
#include "kernels/lanes/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <DType from, DType to, Rounding rounding>
void cast(const KernelArguments& s) {
  constexpr Format source = format_of(from), target = format_of(to);
  constexpr int rows = random_bits(to) == 16 ? 4 : 2;
  constexpr bool random = rounding == Rounding::stochastic;
  const void* const src = s.reads[0];
  void* const dst = s.writes[0];
  walk<rows, random>(s, size_of(to), [=](auto streams) {
    return [=](std::ptrdiff_t at, auto which, U bits) __attribute__((always_inline)) {
      write<target, rounding, decltype(streams)::value>(dst, at, read<source>(src, at, which), bits, which);
    };
  });
}

// Handles groups of 64 elements, 32 elements at a time or, if vectors have 16 lanes, all 64.
template <Rounding rounding>
void cast_to_bf16(const KernelArguments& s) {
  constexpr bool random = rounding == Rounding::stochastic;
  constexpr int size = 64, turn = lanes == 16 ? 64 : 32, twos = turn / pair_lanes;
  constexpr LaneOrder order = LaneOrder::rows;
  const char* const src = static_cast<const char*>(s.reads[0]);
  char* const dst = static_cast<char*>(s.writes[0]);
  const auto step = [=](std::ptrdiff_t at, auto which, U some) __attribute__((always_inline)) {
    write<bf16_format, rounding, false>(dst, at, read<f32_format>(src, at, which), some, which);
  };
  const RandomStreamFor<random, order, turn / 32> first(s.key, s.first);
  const auto make_block = [&](auto streams) __attribute__((always_inline)) {
    return [=, &s, bits = first](std::ptrdiff_t begin) TRELLIS_INLINE_MUTABLE {
#pragma GCC unroll 2
      for (std::ptrdiff_t at = begin; at < begin + size; at += turn) {
        const char* const from = src + at * 4;
        VectorPair<order> values[twos];
#pragma GCC unroll 4
        for (int i = 0; i < twos; ++i) values[i] = read_two<f32_format, order>(from, i * pair_lanes);
        bits.next();
        if (!write_twos<rounding, decltype(streams)::value, twos>(dst + at * 2, values, bits)) [[unlikely]]
          walk_range<4, RandomBitsFor<random>>(s, at, at + turn, step);
      }
    };
  };
  walk_blocks<4, random, size>(s, 2, make_block, step);
}

template <DType from, DType to, Rounding rounding>
void cast_through_f32(const KernelArguments& s) {
  constexpr std::size_t most = 512;
  alignas(64) std::array<float, most> wide;
  for (std::size_t at = 0; at < s.n; at += most) {
    const std::size_t n = s.n - at < most ? s.n - at : most;
    const void* reads[] = {static_cast<const char*>(s.reads[0]) + at * size_of(from)};
    void* writes[] = {wide.data()};
    cast<from, DType::f32, Rounding::nearest>({.n = n, .writes = writes, .reads = reads});
    reads[0] = wide.data();
    writes[0] = static_cast<char*>(s.writes[0]) + at * size_of(to);
    cast<DType::f32, to, rounding>(
        {.n = n, .writes = writes, .reads = reads, .first = s.first + at, .key = s.key, .streaming = s.streaming});
  }
}

constexpr std::size_t float_types = 8;  // all but f64

constexpr DType float_type(std::size_t i) { return static_cast<DType>(i + 1); }

template <std::size_t i>
constexpr Twin twin() {
  constexpr DType from = float_type(i / rounding_count / float_types),
                  to = float_type(i / rounding_count % float_types);
  constexpr auto rounding = static_cast<Rounding>(i % rounding_count);
  constexpr KernelName name = KernelName::of("cast", kernels::name(from), kernels::name(to), kernels::name(rounding));
  if constexpr (to == DType::f32)
    return {name, cast<from, to, Rounding::nearest>};  // exact, whatever the rounding
  else if constexpr (from == DType::f32 && to == DType::bf16)
    return {name, cast_to_bf16<rounding>};
  else if constexpr (from == DType::f32 && size_of(to) == 1 && rounding == Rounding::nearest)
    return {name, cast_to_f8<to>};
  else if constexpr (from == DType::f32)
    return {name, cast<from, to, rounding>};
  else
    return {name, cast_through_f32<from, to, rounding>};
}

constexpr auto casts = []<std::size_t... i>(std::index_sequence<i...>) { return std::array{twin<i>()...}; }
(std::make_index_sequence<float_types * float_types * rounding_count>{});

const Registered registered(this_isa, casts);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
