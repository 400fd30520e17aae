// The plain streaming loops in vectors.
#pragma once

#include <array>

#include "kernels/dispatch/parallel.h"
#include "kernels/lanes/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <int sources>
struct SourcePointers {
  const void* at[sources];
  explicit SourcePointers(const KernelArguments& s) {
    for (int k = 0; k < sources; ++k) at[k] = s.reads[k];
  }
  template <class Which>
  TRELLIS_INLINE U sum(std::ptrdiff_t i, Which which) const {
    U sum = load<U>(at[0], i, which);
#pragma GCC unroll 8
    for (int k = 1; k < sources; ++k) sum += load<U>(at[k], i, which);
    return sum;
  }
};

template <int sources, int written, bool updates>
void move(const KernelArguments& whole) {
  KernelArguments s = whole;
  struct Writes {
    void* at[written];
  } to;
  for (int w = 0; w < written; ++w) {
    to.at[w] = s.writes[w];
    const auto apart = reinterpret_cast<std::uintptr_t>(to.at[w]) - reinterpret_cast<std::uintptr_t>(to.at[0]);
    s.streaming = s.streaming && apart % 64 == 0;
  }
  const SourcePointers<sources> from(s);
  walk<4, false>(s, 4, [=](auto streams) {
    return [=](std::ptrdiff_t at, auto which, U) __attribute__((always_inline)) {
      const U sum = from.sum(at, which);
#pragma GCC unroll 4
      for (int w = 0; w < written; ++w) {
        const U word = updates ? sum + load<U>(to.at[w], at, which) : sum;
        put<decltype(streams)::value>(to.at[w], at, word, which);
      }
    };
  });
}

template <int sources>
void read_all(const KernelArguments& s) {
  constexpr auto part = static_cast<std::ptrdiff_t>(part_elements);
  const SourcePointers<sources> from(s);
  const auto n = static_cast<std::ptrdiff_t>(s.n);
  for (std::ptrdiff_t begin = 0; begin < n; begin += part) {
    const std::ptrdiff_t end = n - begin < part ? n : begin + part;
    U sums[4] = {};
    std::ptrdiff_t at = begin;
    for (; at + 4 * lanes <= end; at += 4 * lanes)
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) sums[v] += from.sum(at + v * lanes, AllLanes{});
    for (; at < end; at += lanes)
      sums[0] += from.sum(at, LaneRange{0, static_cast<int>(end - at < lanes ? end - at : lanes)});
    const U all = sums[0] + sums[1] + sums[2] + sums[3];
    std::uint32_t sum = 0;
    for (int i = 0; i < lanes; ++i) sum += all[i];
    std::memcpy(static_cast<char*>(s.writes[0]) + begin / part * 4, &sum, sizeof sum);
  }
}

constexpr std::array<Twin, 12> limits = {{{KernelName::of("limit", "copy"), move<1, 1, false>},
                                          {KernelName::of("limit", "add"), move<2, 1, false>},
                                          {KernelName::of("limit", "sum4"), move<4, 1, false>},
                                          {KernelName::of("limit", "sum8"), move<8, 1, false>},
                                          {KernelName::of("limit", "expand"), move<1, 2, false>},
                                          {KernelName::of("limit", "update"), move<1, 1, true>},
                                          {KernelName::of("limit", "update2"), move<1, 2, true>},
                                          {KernelName::of("limit", "update3"), move<1, 3, true>},
                                          {KernelName::of("limit", "triad"), move<2, 1, true>},
                                          {KernelName::of("limit", "read"), read_all<1>},
                                          {KernelName::of("limit", "read2"), read_all<2>},
                                          {KernelName::of("limit", "read3"), read_all<3>}}};

const Registered registered(this_isa, limits);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
