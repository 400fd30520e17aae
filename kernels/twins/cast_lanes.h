// cast: f32 to and from each floating type in vectors; the other pairs through f32, which holds them all exactly.
#pragma once

#include <array>

#include "kernels/float_lanes.h"
#include "kernels/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <DType from, DType to, Rounding rounding>
void cast(const Stretch& s) {
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

template <DType from, DType to, Rounding rounding>
void cast_through_f32(const Stretch& s) {
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

constexpr std::size_t float_types = 8;  // but f64

constexpr DType float_type(std::size_t i) { return static_cast<DType>(i + 1); }

template <std::size_t i>
constexpr Twin twin() {
  constexpr DType from = float_type(i / rounding_count / float_types),
                  to = float_type(i / rounding_count % float_types);
  constexpr auto rounding = static_cast<Rounding>(i % rounding_count);
  constexpr Name name = Name::of("cast", kernels::name(from), kernels::name(to), kernels::name(rounding));
  if constexpr (to == DType::f32)
    return {name, cast<from, to, Rounding::nearest>};  // exact, whatever the rounding
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
