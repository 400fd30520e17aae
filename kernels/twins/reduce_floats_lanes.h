// reduce of f32, bf16 and f16: in vectors of f32.
#pragma once

#include <array>

#include "kernels/lanes/reduce_units_lanes.h"
#include "kernels/lanes/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// Makes the step that reduces one vector, full or partial.
template <DType type, Reduction op, Rounding rounding, bool streaming = false>
TRELLIS_INLINE auto step_of(const KernelArguments& s, const FloatReduceScale<op>& joining) {
  const void* const* const reads = s.reads;
  void* const dst = s.writes[0];
  return [ =, sources = s.sources ](std::ptrdiff_t at, auto which, U bits) __attribute__((always_inline)) {
    F sum = joining.taken(read<format_of(type)>(reads[0], at, which));
    for (int k = 1; k < sources; ++k) sum = joined<op>(sum, joining.taken(read<format_of(type)>(reads[k], at, which)));
    write_result<format_of(type), rounding, streaming>(dst, at, joining.given(sum), bits, which);
  };
}

template <DType type, Reduction op, int known>
void reduce_nearest(const KernelArguments& s) {
  constexpr int vectors = type == DType::bf16 ? 8 : 4;
  const FloatReduceScale<op> joining(s);
  const ReduceSources<known> sources(s);
  void* const dst = s.writes[0];
  const auto step = step_of<type, op, Rounding::nearest>(s, joining);
  const auto make_block = [&](auto streams) {
    return [&](std::ptrdiff_t begin) __attribute__((always_inline)) {
      constexpr bool far = decltype(streams)::value;
      // When writes go past the caches and there are two sources, it is fastest to write one cache line at a time.
      constexpr int size = far && known == 2 ? 64 / static_cast<int>(size_of(type)) : vectors * lanes;
      constexpr int turn = size < vectors * lanes ? size : vectors * lanes, units = turn / ReduceUnit<type>::size;
#pragma GCC unroll 8
      for (std::ptrdiff_t at = begin; at < begin + vectors * lanes; at += turn) {
        ReduceUnit<type> sums[units];
        void* const to = const_cast<void*>(place_in(dst, at * static_cast<std::ptrdiff_t>(size_of(type))));
        join_units<type, op, units, far>(sources, joining, at, sums);
        if (!write_units<type, Rounding::nearest, far, units>(to, sums, NoRandomStream{})) [[unlikely]]
          walk_range<4, NoRandomBits>(s, at, at + turn, step);
      }
    };
  };
  walk_blocks<4, false, vectors * lanes>(s, size_of(type), make_block, step);
}

// Handles groups of 64 elements, 32 elements at a time or, if vectors have 16 lanes, all 64.
template <Reduction op, int known>
void reduce_bf16_stochastic(const KernelArguments& s) {
  constexpr DType type = DType::bf16;
  constexpr int size = 64, turn = lanes == 16 ? 64 : 32, units = turn / pair_lanes;
  const FloatReduceScale<op> joining(s);
  const ReduceSources<known> sources(s);
  void* const dst = s.writes[0];
  const auto step = step_of<type, op, Rounding::stochastic>(s, joining);
  const RandomStream<LaneOrder::pairs, turn / 32> first(s.key, s.first);
  const auto make_block = [&](auto streams) {
    return [&, bits = first](std::ptrdiff_t begin) TRELLIS_INLINE_MUTABLE {
      constexpr bool far = decltype(streams)::value;
#pragma GCC unroll 2
      for (std::ptrdiff_t at = begin; at < begin + size; at += turn) {
        ReduceUnit<type> sums[units];
        void* const to = const_cast<void*>(place_in(dst, at * static_cast<std::ptrdiff_t>(size_of(type))));
        join_units<type, op, units, far>(sources, joining, at, sums);
        bits.next();
        if (!write_units<type, Rounding::stochastic, far, units>(to, sums, bits)) [[unlikely]]
          walk_range<4, RandomBits>(s, at, at + turn, step);
      }
    };
  };
  walk_blocks<4, true, size>(s, size_of(type), make_block, step);
}

template <DType type, Reduction op>
void reduce_stochastic(const KernelArguments& s) {
  if constexpr (type == DType::bf16)
    return by_sources<op>(s, [&](auto known) { reduce_bf16_stochastic<op, decltype(known)::value>(s); });
  const FloatReduceScale<op> joining(s);
  walk<random_bits(type) == 16 ? 4 : 2, true>(s, size_of(type), [&](auto streams) {
    return step_of<type, op, Rounding::stochastic, decltype(streams)::value>(s, joining);
  });
}

template <DType type, Reduction op, Rounding rounding>
void reduce_floats(const KernelArguments& s) {
  if constexpr (rounding == Rounding::stochastic) return reduce_stochastic<type, op>(s);
  by_sources<op>(s, [&](auto known) { reduce_nearest<type, op, decltype(known)::value>(s); });
}

template <std::size_t i>
constexpr Twin twin() {
  constexpr DType types[] = {DType::f32, DType::bf16, DType::bf16, DType::f16, DType::f16};
  constexpr DType type = types[i / reduction_count];
  constexpr Rounding rounding =
      i / reduction_count % 2 == 0 && i >= reduction_count ? Rounding::stochastic : Rounding::nearest;
  return {KernelName::of("reduce", name(reduction(i)), name(type), name(rounding)),
          reduce_floats<type, reduction(i), rounding>};
}

constexpr auto floats = []<std::size_t... i>(std::index_sequence<i...>) { return std::array{twin<i>()...}; }
(std::make_index_sequence<5 * reduction_count>{});

const Registered registered(this_isa, floats);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
