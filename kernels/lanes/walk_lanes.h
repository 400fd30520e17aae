// Walks over a call's elements by vectors, and brings each the random bits of its elements.
#pragma once

#include "kernels/lanes/random_bits_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// step(at, which, random) is called for each vector: lane 0 is element `at` (negative in a first, partial group),
// `which` says which lanes take part. A group is `rows` rows of 16 elements; a random kernel's groups begin at
// multiples of their size in the global index.
template <int rows, class Source, class Step>
TRELLIS_INLINE void whole_group(Source& bits, std::uint64_t number, std::ptrdiff_t at, const Step& step) {
  for (int lane = 0; lane < 16; lane += lanes) {
    bits.make(number, lane);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) step(at + 16 * r + lane, AllLanes{}, bits.template row<rows>(r));
  }
}

// Not inlined, and shared by walks with and without streaming: partial groups are rare, but would be most of the code.
template <int rows, class Source, class Step>
[[gnu::noinline]] void partial_group(Source bits, std::uint64_t number, std::ptrdiff_t at, LaneRange part, Step step) {
  for (int i = 0; i < 16 * rows / lanes; ++i) {
    const int r = i / (16 / lanes), lane = i % (16 / lanes) * lanes, begin = 16 * r + lane;
    const int from = part.from > begin ? part.from - begin : 0;
    const int to = part.to - begin < lanes ? part.to - begin : lanes;
    if (from >= to) continue;
    bits.make(number, lane);
    if (from == 0 && to == lanes)
      step(at + begin, AllLanes{}, bits.template row<rows>(r));
    else
      step(at + begin, LaneRange{from, to}, bits.template row<rows>(r));
  }
}

template <int rows, class Source, class Step, class PartStep>
TRELLIS_INLINE void walk_from(const KernelArguments& s, std::size_t phase, const Step& step,
                              const PartStep& part_step) {
  constexpr auto whole = static_cast<std::ptrdiff_t>(16 * rows);
  Source bits(s);
  std::uint64_t number = s.first / (16 * rows);
  std::ptrdiff_t at = -static_cast<std::ptrdiff_t>(phase);
  const auto n = static_cast<std::ptrdiff_t>(s.n);
  for (bool first = true; at < n; at += whole, ++number, first = false) {
    if (at < 0 || at + whole > n) {
      const LaneRange part{first ? static_cast<int>(phase) : 0, static_cast<int>(n - at < whole ? n - at : whole)};
      partial_group<rows>(bits, number, at, part, part_step);
      continue;
    }
    for (; at + whole <= n; at += whole, ++number) whole_group<rows>(bits, number, at, step);
    at -= whole, --number;
  }
}

// Whether a walk over these elements may stream its write: groups must begin at multiples of 64 bytes.
template <int rows, bool random>
TRELLIS_INLINE bool may_stream(const KernelArguments& s, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(s.writes[0]);
  if (!s.streaming || address % size != 0) return false;
  return !random || (address - s.first % (16 * rows) * size) % 64 == 0;
}

// Walks over all elements. make_step(std::true_type{}) makes the step that writes past the caches, for where
// may_stream() allows it; make_step(std::false_type{}) makes the other.
template <int rows, bool random, class MakeStep>
TRELLIS_INLINE void walk(const KernelArguments& s, std::size_t write_size, const MakeStep& make_step) {
  constexpr std::size_t size = 16 * rows;
  using Source = RandomBitsFor<random>;
  const bool streams = may_stream<rows, random>(s, write_size);
  const std::size_t head = streams && !random ? to_alignment(s.writes[0], write_size) : 0;
  const std::size_t phase = random ? static_cast<std::size_t>(s.first % size) : (size - head) % size;
  if (!streams) return walk_from<rows, Source>(s, phase, make_step(std::false_type{}), make_step(std::false_type{}));
  walk_from<rows, Source>(s, phase, make_step(std::true_type{}), make_step(std::false_type{}));
  fence();
}

// Calls step for the elements from `begin` up to `end`, which need not be whole groups.
template <int rows, class Source, class Step>
TRELLIS_INLINE void walk_range(const KernelArguments& s, std::ptrdiff_t begin, std::ptrdiff_t end, const Step& step) {
  constexpr std::ptrdiff_t whole = 16 * rows;
  const std::uint64_t start = s.first + static_cast<std::uint64_t>(begin);
  const auto phase = static_cast<std::ptrdiff_t>(start % whole);
  std::uint64_t number = start / whole;
  for (std::ptrdiff_t at = begin - phase; at < end; at += whole, ++number) {
    const auto from = static_cast<int>(at < begin ? phase : 0),
               to = static_cast<int>(end - at < whole ? end - at : whole);
    partial_group<rows>(Source(s), number, at, LaneRange{from, to}, step);
  }
}

// For kernels that are faster with more than a vector at a time. make_block(streams) gives block(at), which handles
// `size` elements, a multiple of a group's. Blocks begin at a multiple of 64 bytes of the write, or at a group if the
// kernel is random; step handles what is left over at both ends.
template <int rows, bool random, int size, class Source = RandomBitsFor<random>, class MakeBlock, class Step>
TRELLIS_INLINE void walk_blocks(const KernelArguments& s, std::size_t write_size, const MakeBlock& make_block,
                                const Step& step) {
  constexpr std::size_t group = 16 * rows;
  const std::size_t aligned = random ? (group - s.first % group) % group : to_alignment(s.writes[0], write_size);
  const auto n = static_cast<std::ptrdiff_t>(s.n);
  const auto head = static_cast<std::ptrdiff_t>(aligned < s.n ? aligned : s.n);
  const std::ptrdiff_t end = head + (n - head) / size * size;
  walk_range<rows, Source>(s, 0, head, step);
  const auto blocks = [&](auto block) __attribute__((always_inline)) {
    for (std::ptrdiff_t at = head; at < end; at += size) block(at);
  };
  if (may_stream<rows, random>(s, write_size)) {
    blocks(make_block(std::true_type{}));
    fence();
  } else {
    blocks(make_block(std::false_type{}));
  }
  walk_range<rows, Source>(s, end, n, step);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
