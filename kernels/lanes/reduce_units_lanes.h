// Reads, joins and writes floats by units. A unit is what one load reads and one store writes.
#pragma once

#include "kernels/lanes/bf16_load_store_lanes.h"
#include "kernels/lanes/reduce_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <Reduction op>
struct FloatReduceScale {
  F factor, count;
  explicit FloatReduceScale(const KernelArguments& s)
      : factor(f_all(static_cast<float>(static_cast<const ReduceSettings*>(s.settings)->factor))),
        count(f_all(static_cast<float>(s.sources))) {}
  TRELLIS_INLINE F taken(F value) const { return op == Reduction::scaled_sum ? value * factor : value; }
  TRELLIS_INLINE F given(F sum) const { return op == Reduction::avg ? sum / count : sum; }
};

// What one load reads and one store writes: a vector of values, or for bf16 two.
template <DType type>
struct ReduceUnit {
  static constexpr int vectors = type == DType::bf16 ? 2 : 1;
  static constexpr int size = vectors * lanes;
  F at[vectors];
};

template <DType type>
TRELLIS_INLINE ReduceUnit<type> read_unit(const void* array, std::ptrdiff_t at) {
  if constexpr (type == DType::bf16) {
    const Pair p = read_pair(array, at);
    return {{p.first, p.second}};
  } else {
    return {{read<format_of(type)>(array, at, AllLanes{})}};
  }
}

// If the type is bf16 and there is a NaN among the sums, returns false and writes nothing.
template <DType type, Rounding rounding, bool streaming, int units, class Random>
[[nodiscard]] TRELLIS_INLINE bool write_units(void* array, const ReduceUnit<type>* sums, const Random& random) {
  if constexpr (type == DType::bf16) {
    Pair pairs[units];
    for (int u = 0; u < units; ++u) pairs[u] = {sums[u].at[0], sums[u].at[1]};
    return write_twos<rounding, streaming, units>(array, pairs, random);
  } else {
#pragma GCC unroll 8
    for (int u = 0; u < units; ++u)
      write_result<format_of(type), rounding, streaming>(array, u * lanes, sums[u].at[0], U{}, AllLanes{});
    return true;
  }
}

// Joins the units at `at` of one source after the other, while the sums stay in registers.
template <DType type, Reduction op, int units, bool from_memory, int known>
TRELLIS_INLINE void join_units(const ReduceSources<known>& sources, const FloatReduceScale<op>& joining,
                               std::ptrdiff_t at, ReduceUnit<type>* sums) {
  using One = ReduceUnit<type>;
  constexpr auto size = static_cast<std::ptrdiff_t>(size_of(type));
  constexpr int bytes = units * One::size * static_cast<int>(size);
  const void* const first = place_in(sources.first[0], at * size);
  if constexpr (from_memory) ask_ahead<bytes>(first);
#pragma GCC unroll 8
  for (int u = 0; u < units; ++u) {
    sums[u] = read_unit<type>(first, u * One::size);
    for (F& f : sums[u].at) f = joining.taken(f);
  }
  sources.each_other([&](const void* array) __attribute__((always_inline)) {
    const void* const source = place_in(array, at * size);
    if constexpr (from_memory) ask_ahead<bytes>(source);
#pragma GCC unroll 8
    for (int u = 0; u < units; ++u) {
      const One next = read_unit<type>(source, u * One::size);
      for (int v = 0; v < One::vectors; ++v) sums[u].at[v] = joined<op>(sums[u].at[v], joining.taken(next.at[v]));
    }
  });
#pragma GCC unroll 8
  for (int u = 0; u < units; ++u)
    for (F& f : sums[u].at) f = joining.given(f);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
