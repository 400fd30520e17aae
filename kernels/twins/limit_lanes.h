// The plain streaming loops in vectors.
#pragma once

#include <array>

#include "kernels/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <int sources>
void add(const Stretch& s) {
  const void* const* const reads = s.reads;
  void* const dst = s.writes[0];
  walk<4, false>(s, 4, [=](auto streams) {
    return [=](std::ptrdiff_t at, auto which, U) __attribute__((always_inline)) {
      U sum = load<U>(reads[0], at, which);
#pragma GCC unroll 8
      for (int k = 1; k < sources; ++k) sum += load<U>(reads[k], at, which);
      put<decltype(streams)::value>(dst, at, sum, which);
    };
  });
}

void expand(const Stretch& whole) {
  Stretch s = whole;
  void* const first = s.writes[0];
  void* const second = s.writes[1];
  const void* const src = s.reads[0];
  const auto apart = reinterpret_cast<std::uintptr_t>(first) - reinterpret_cast<std::uintptr_t>(second);
  s.streaming = s.streaming && apart % 64 == 0;
  walk<4, false>(s, 4, [=](auto streams) {
    return [=](std::ptrdiff_t at, auto which, U) __attribute__((always_inline)) {
      const U word = load<U>(src, at, which);
      put<decltype(streams)::value>(first, at, word, which);
      put<decltype(streams)::value>(second, at, word, which);
    };
  });
}

constexpr std::array<Twin, 5> limits = {{{Name::of("limit", "copy"), add<1>},
                                         {Name::of("limit", "add"), add<2>},
                                         {Name::of("limit", "sum4"), add<4>},
                                         {Name::of("limit", "sum8"), add<8>},
                                         {Name::of("limit", "expand"), expand}}};

const Registered registered(this_isa, limits);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
