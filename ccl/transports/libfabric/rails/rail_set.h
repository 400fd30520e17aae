// A set of rails by number. Numbers go up as rails are opened, and at most most_rails are open at a time, so the set is
// all rails below a number and some of the next ones.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace trellis::ccl::libfabric {

inline constexpr int most_rails = 4;  // that a rank has open at a time

// The place of a rail's data in arrays: the rail that had this place before is closed by then.
inline constexpr std::size_t slot_of(int rail) { return static_cast<std::size_t>(rail % most_rails); }

class RailSet {
 public:
  bool has(int rail) const {
    return rail < below() || (rail < below() + width && (above() >> (rail - below()) & 1) != 0);
  }
  int first_outside() const { return below(); }
  int count() const { return below() + std::popcount(above()); }
  void add(int rail) {
    if (!has(rail)) *this = RailSet(below(), above() | std::uint64_t{1} << (rail - below()));
  }
  friend RailSet operator|(RailSet a, RailSet b) {
    const int base = std::max(a.below(), b.below());
    return {base, a.above_from(base) | b.above_from(base)};
  }
  bool operator==(const RailSet&) const = default;

  // The set as a number, for messages and atomic variables.
  std::uint64_t word() const { return word_; }
  explicit RailSet(std::uint64_t word) : word_(word) {}
  RailSet() = default;
  // False if no rank writes such a set: it has more rails than can be opened.
  bool is_plausible() const { return word_ >> bits < most_opened && (above() & 1) == 0; }

 private:
  static constexpr int bits = 8, width = bits;
  static constexpr std::uint64_t most_opened = std::uint64_t{1} << 30;
  RailSet(int below, std::uint64_t above) {
    const int more = std::countr_one(above);
    word_ = static_cast<std::uint64_t>(below + more) << bits | (above >> more & 0xFF);
  }
  int below() const { return static_cast<int>(word_ >> bits); }
  std::uint64_t above() const { return word_ & 0xFF; }
  std::uint64_t above_from(int base) const { return base - below() < width ? above() >> (base - below()) : 0; }

  std::uint64_t word_ = 0;
};

}  // namespace trellis::ccl::libfabric
