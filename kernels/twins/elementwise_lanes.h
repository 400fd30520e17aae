// fill, scale, axpy in vectors.
#pragma once

#include <array>

#include "kernels/lanes/bf16_load_store_lanes.h"
#include "kernels/lanes/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <DType type, Rounding rounding, bool add>
void scale(const KernelArguments& s) {
  constexpr Format format = format_of(type);
  constexpr int rows = random_bits(type) == 16 ? 4 : 2;
  const F factor = f_all(*static_cast<const float*>(s.settings));
  const void* const src = s.reads[0];
  void* const dst = s.writes[0];
  walk<rows, rounding == Rounding::stochastic>(s, size_of(type), [=](auto streams) {
    return [=](std::ptrdiff_t at, auto which, U bits) __attribute__((always_inline)) {
      F value = read<format>(src, at, which) * factor;
      if constexpr (add) value = read<format>(dst, at, which) + value;
      write_result<format, rounding, decltype(streams)::value>(dst, at, value, bits, which);
    };
  });
}

// Scales bf16 by groups of 64 elements, 32 elements at a time or, if vectors have 16 lanes, all 64.
template <Rounding rounding, bool add>
void scale_bf16(const KernelArguments& s) {
  constexpr bool random = rounding == Rounding::stochastic;
  constexpr int size = 64, turn = lanes == 16 ? 64 : 32, twos = turn / pair_lanes;
  constexpr LaneOrder order = LaneOrder::pairs;
  const F factor = f_all(*static_cast<const float*>(s.settings));
  const char* const src = static_cast<const char*>(s.reads[0]);
  char* const dst = static_cast<char*>(s.writes[0]);
  const auto step = [=](std::ptrdiff_t at, auto which, U some) __attribute__((always_inline)) {
    F value = read<bf16_format>(src, at, which) * factor;
    if constexpr (add) value = read<bf16_format>(dst, at, which) + value;
    write_result<bf16_format, rounding, false>(dst, at, value, some, which);
  };
  const RandomStreamFor<random, order, turn / 32> first(s.key, s.first);
  const auto make_block = [&](auto streams) __attribute__((always_inline)) {
    return [=, &s, bits = first](std::ptrdiff_t begin) TRELLIS_INLINE_MUTABLE {
#pragma GCC unroll 2
      for (std::ptrdiff_t at = begin; at < begin + size; at += turn) {
        Pair values[twos];
#pragma GCC unroll 4
        for (int i = 0; i < twos; ++i) {
          const Pair x = read_pair(src, at + i * pair_lanes);
          values[i] = {x.first * factor, x.second * factor};
          if constexpr (add) {
            const Pair y = read_pair(dst, at + i * pair_lanes);
            values[i] = {y.first + values[i].first, y.second + values[i].second};
          }
        }
        bits.next();
        if (!write_twos<rounding, decltype(streams)::value, twos>(dst + at * 2, values, bits)) [[unlikely]]
          walk_range<4, RandomBitsFor<random>>(s, at, at + turn, step);
      }
    };
  };
  walk_blocks<4, random, size>(s, 2, make_block, step);
}

template <class T>
void fill(const KernelArguments& s) {
  T value;
  std::memcpy(&value, s.settings, sizeof value);
  typedef T Many __attribute__((vector_size(4 * lanes)));
  const Many many = value - Many{};
  constexpr std::size_t step = sizeof(Many) / sizeof(T);
  std::size_t i = 0;
  const auto address = reinterpret_cast<std::uintptr_t>(s.writes[0]);
  if (s.streaming && address % sizeof(T) == 0) {
    const std::size_t head = to_alignment(s.writes[0], sizeof(T));
    for (; i < head && i < s.n; ++i) std::memcpy(static_cast<char*>(s.writes[0]) + i * sizeof(T), &value, sizeof(T));
    for (; i + step <= s.n; i += step) put<true>(s.writes[0], static_cast<std::ptrdiff_t>(i), many, AllLanes{});
    fence();
  }
  for (; i + step <= s.n; i += step) put<false>(s.writes[0], static_cast<std::ptrdiff_t>(i), many, AllLanes{});
  for (; i < s.n; ++i) std::memcpy(static_cast<char*>(s.writes[0]) + i * sizeof(T), &value, sizeof(T));
}

constexpr Rounding near = Rounding::nearest, random = Rounding::stochastic;
constexpr std::array<Twin, 14> elementwise = {{
    {KernelName::of("scale", "f32", "nearest"), scale<DType::f32, near, false>},
    {KernelName::of("scale", "bf16", "nearest"), scale_bf16<near, false>},
    {KernelName::of("scale", "bf16", "stochastic"), scale_bf16<random, false>},
    {KernelName::of("scale", "f16", "nearest"), scale<DType::f16, near, false>},
    {KernelName::of("scale", "f16", "stochastic"), scale<DType::f16, random, false>},
    {KernelName::of("axpy", "f32", "nearest"), scale<DType::f32, near, true>},
    {KernelName::of("axpy", "bf16", "nearest"), scale_bf16<near, true>},
    {KernelName::of("axpy", "bf16", "stochastic"), scale_bf16<random, true>},
    {KernelName::of("axpy", "f16", "nearest"), scale<DType::f16, near, true>},
    {KernelName::of("axpy", "f16", "stochastic"), scale<DType::f16, random, true>},
    {KernelName::of("fill", "u8"), fill<std::uint8_t>},
    {KernelName::of("fill", "u16"), fill<std::uint16_t>},
    {KernelName::of("fill", "u32"), fill<std::uint32_t>},
    {KernelName::of("fill", "u64"), fill<std::uint64_t>},
}};

const Registered registered(this_isa, elementwise);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
