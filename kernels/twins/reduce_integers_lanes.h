// reduce of integers, which wrap: in vectors of each type.
#pragma once

#include <array>

#include "kernels/lanes/integer_lanes.h"
#include "kernels/lanes/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <class T, Reduction op, int vectors, bool streaming, int known, class Which>
TRELLIS_INLINE void join_whole(const ReduceSources<known>& sources, const IntegerReduceScale<T, op>& around, void* dst,
                               std::ptrdiff_t at, Which which) {
  using Vector = typename IntegerVectorTypes<T>::Lanes;
  constexpr std::ptrdiff_t size = sizeof(T), count = IntegerVectorTypes<T>::count;
  Vector sums[vectors];
  const void* const first = place_in(sources.first[0], at * size);
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) sums[v] = around.taken(load<Vector>(first, v * count, which));
  sources.each_other([&](const void* array) __attribute__((always_inline)) {
    const void* const source = place_in(array, at * size);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v)
      sums[v] = joined_integers<T, op>(sums[v], around.taken(load<Vector>(source, v * count, which)));
  });
  void* const to = const_cast<void*>(place_in(dst, at * size));
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) put<streaming>(to, v * count, around.given(sums[v]), which);
}

template <class T, Reduction op, int known>
void reduce_known(const KernelArguments& s) {
  constexpr int vectors = 4, count = IntegerVectorTypes<T>::count;
  const ReduceSources<known> sources(s);
  const IntegerReduceScale<T, op> around(s);
  void* const dst = s.writes[0];
  const std::size_t before = to_alignment(dst, sizeof(T)), head = before < s.n ? before : s.n;
  const std::size_t end = head + (s.n - head) / (vectors * count) * (vectors * count);
  const auto rest = [&](std::size_t from, std::size_t to) {
    for (; from < to; from += count) {
      const std::size_t left = to - from;
      join_whole<T, op, 1, false>(sources, around, dst, static_cast<std::ptrdiff_t>(from),
                                  LaneRange{0, static_cast<int>(left < count ? left : count)});
    }
  };
  const auto blocks = [&](auto streams) __attribute__((always_inline)) {
    for (std::size_t at = head; at < end; at += vectors * count)
      join_whole<T, op, vectors, decltype(streams)::value>(sources, around, dst, static_cast<std::ptrdiff_t>(at),
                                                           AllLanes{});
  };
  rest(0, head);
  if (s.streaming && reinterpret_cast<std::uintptr_t>(dst) % sizeof(T) == 0) {
    blocks(std::true_type{});
    fence();
  } else {
    blocks(std::false_type{});
  }
  rest(end, s.n);
}

template <class T, Reduction op>
void reduce_whole(const KernelArguments& s) {
  by_sources<op>(s, [&](auto known) { reduce_known<T, op, decltype(known)::value>(s); });
}

template <class T, std::size_t i>
constexpr Twin whole_twin(DType type) {
  return {KernelName::of("reduce", name(reduction(i)), name(type), "nearest"), reduce_whole<T, reduction(i)>};
}

template <class T, std::size_t... i>
constexpr auto whole_twins(DType type, std::index_sequence<i...>) {
  return std::array{whole_twin<T, i>(type)...};
}

constexpr std::make_index_sequence<reduction_count> each_reduction{};
constexpr auto i8s = whole_twins<std::int8_t>(DType::i8, each_reduction);
constexpr auto u8s = whole_twins<std::uint8_t>(DType::u8, each_reduction);
constexpr auto i16s = whole_twins<std::int16_t>(DType::i16, each_reduction);
constexpr auto u16s = whole_twins<std::uint16_t>(DType::u16, each_reduction);
constexpr auto i32s = whole_twins<std::int32_t>(DType::i32, each_reduction);
constexpr auto u32s = whole_twins<std::uint32_t>(DType::u32, each_reduction);
constexpr auto i64s = whole_twins<std::int64_t>(DType::i64, each_reduction);
constexpr auto u64s = whole_twins<std::uint64_t>(DType::u64, each_reduction);

const Registered registered[] = {{this_isa, i8s},  {this_isa, u8s},  {this_isa, i16s}, {this_isa, u16s},
                                 {this_isa, i32s}, {this_isa, u32s}, {this_isa, i64s}, {this_isa, u64s}};

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
