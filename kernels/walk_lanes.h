// Walks over a stretch by vectors, and brings each the random bits of its elements.
#pragma once

#include "kernels/lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// The random bits of elements by vectors, as random.h has them one by one.
class Bits {
 public:
  explicit Bits(const RandomKey& key) : start_(key.start), inner_(key.inner) {}
  explicit Bits(const Stretch& s) : Bits(s.key) {}

  // For the lanes from `lane` on of the rows of a group.
  TRELLIS_INLINE void make(std::uint64_t group, int lane) {
    const std::uint64_t word = start_ + (group * 16 + static_cast<std::uint64_t>(lane / 2)) * weyl_step;
    first_ = (U)mixed(word + steps());
    second_ = (U)mixed((word + 8 * weyl_step) + steps());
  }
  template <int rows>
  TRELLIS_INLINE U row(int r) const {
    const U words = r < rows / 2 ? first_ : second_;
    if constexpr (rows == 2) return words;
    return r % 2 == 0 ? words & 0xFFFF : words >> 16;
  }

 private:
  TRELLIS_INLINE W mixed(W x) const {
    x = (x ^ (x >> 30)) * mix_first;
    x = (x ^ (x >> 27) ^ inner_) * mix_second;
    return x ^ (x >> 31);
  }
  TRELLIS_INLINE static W steps() {
    W w{};
    for (int i = 0; i < lanes / 2; ++i) w[i] = static_cast<std::uint64_t>(i) * weyl_step;
    return w;
  }
  std::uint64_t start_, inner_;
  U first_ = {}, second_ = {};
};

struct NoBits {
  explicit NoBits(const Stretch&) {}
  void make(std::uint64_t, int) {}
  template <int rows>
  TRELLIS_INLINE U row(int) const {
    return U{};
  }
};

// step(at, which, random) is called for each vector: lane 0 is element `at` (negative in a first, partial group),
// `which` says which lanes take part. A group is `rows` sixteens; a random kernel's begin at multiples in the global
// index.
template <int rows, class Source, class Step>
TRELLIS_INLINE void whole_group(Source& bits, std::uint64_t number, std::ptrdiff_t at, const Step& step) {
  for (int lane = 0; lane < 16; lane += lanes) {
    bits.make(number, lane);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) step(at + 16 * r + lane, Full{}, bits.template row<rows>(r));
  }
}

// Not inlined, and alike for walks that stream and that don't: partial groups are rare, and would be most of the code.
template <int rows, class Source, class Step>
[[gnu::noinline]] void partial_group(Source bits, std::uint64_t number, std::ptrdiff_t at, Part part, Step step) {
  for (int i = 0; i < 16 * rows / lanes; ++i) {
    const int r = i / (16 / lanes), lane = i % (16 / lanes) * lanes, begin = 16 * r + lane;
    const int from = part.from > begin ? part.from - begin : 0;
    const int to = part.to - begin < lanes ? part.to - begin : lanes;
    if (from >= to) continue;
    bits.make(number, lane);
    step(at + begin, Part{from, to}, bits.template row<rows>(r));
  }
}

template <int rows, class Source, class Step, class PartStep>
TRELLIS_INLINE void walk_from(const Stretch& s, std::size_t phase, const Step& step, const PartStep& part_step) {
  constexpr auto whole = static_cast<std::ptrdiff_t>(16 * rows);
  Source bits(s);
  std::uint64_t number = s.first / (16 * rows);
  std::ptrdiff_t at = -static_cast<std::ptrdiff_t>(phase);
  const auto n = static_cast<std::ptrdiff_t>(s.n);
  for (bool first = true; at < n; at += whole, ++number, first = false) {
    if (at < 0 || at + whole > n) {
      const Part part{first ? static_cast<int>(phase) : 0, static_cast<int>(n - at < whole ? n - at : whole)};
      partial_group<rows>(bits, number, at, part, part_step);
      continue;
    }
    for (; at + whole <= n; at += whole, ++number) whole_group<rows>(bits, number, at, step);
    at -= whole, --number;
  }
}

// Whether a walk over this stretch may stream its write: groups must begin at multiples of 64 bytes.
template <int rows, bool random>
TRELLIS_INLINE bool may_stream(const Stretch& s, std::size_t size) {
  const auto address = reinterpret_cast<std::uintptr_t>(s.writes[0]);
  if (!s.streaming || address % size != 0) return false;
  return !random || (address - s.first % (16 * rows) * size) % 64 == 0;
}

// Calls make_step(constant) for a step that streams, or not, and walks with it.
template <int rows, bool random, class MakeStep>
TRELLIS_INLINE void walk(const Stretch& s, std::size_t write_size, const MakeStep& make_step) {
  constexpr std::size_t size = 16 * rows;
  using Source = std::conditional_t<random, Bits, NoBits>;
  const bool streams = may_stream<rows, random>(s, write_size);
  const std::size_t head = streams && !random ? to_alignment(s.writes[0], write_size) : 0;
  const std::size_t phase = random ? static_cast<std::size_t>(s.first % size) : (size - head) % size;
  if (!streams) return walk_from<rows, Source>(s, phase, make_step(std::false_type{}), make_step(std::false_type{}));
  walk_from<rows, Source>(s, phase, make_step(std::true_type{}), make_step(std::false_type{}));
  fence();
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
