// Blocks of kernels that read one array. From memory, two places of it take turns: the CPU brings two streams faster
// than one.
#pragma once

#include "kernels/lanes/walk_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// As walk_blocks, but that make_block(streams, begin) gives a block(at) that is called for one place after the other
// from `begin` on.
template <bool random, int size, class MakeBlock, class Step>
TRELLIS_INLINE void walk_one_read(const Stretch& s, std::size_t write_size, const MakeBlock& make_block,
                                  const Step& step) {
  constexpr std::size_t group = 64;
  constexpr std::ptrdiff_t apart = 4096;  // elements
  const std::size_t aligned = random ? (group - s.first % group) % group : to_alignment(s.writes[0], write_size);
  const auto n = static_cast<std::ptrdiff_t>(s.n);
  const auto head = static_cast<std::ptrdiff_t>(aligned < s.n ? aligned : s.n);
  const std::ptrdiff_t end = head + (n - head) / size * size;
  const auto rest = [=](auto streams, std::ptrdiff_t from) __attribute__((always_inline)) {
    auto block = make_block(streams, from);
    for (std::ptrdiff_t at = from; at < end; at += size) block(at);
  };
  walk_range<4, BitsFor<random>>(s, 0, head, step);
  if (may_stream<4, random>(s, write_size)) {
    std::ptrdiff_t at = head;
    for (; at + 2 * apart <= end; at += 2 * apart) {
      auto near = make_block(std::true_type{}, at), far = make_block(std::true_type{}, at + apart);
      for (std::ptrdiff_t i = at; i < at + apart; i += size) near(i), far(i + apart);
    }
    rest(std::true_type{}, at);
    fence();
  } else {
    rest(std::false_type{}, head);
  }
  walk_range<4, BitsFor<random>>(s, end, n, step);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
