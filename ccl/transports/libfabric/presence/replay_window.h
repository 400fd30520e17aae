// Drops duplicates of a peer's numbered messages. Messages may come in any order within a window.
#pragma once

#include <cstdint>

namespace trellis::ccl::libfabric {

class ReplayWindow {
 public:
  // False: it has come before, or 64 later ones have. Numbers begin at 1.
  bool take(std::uint64_t number) {
    if (number > highest_) {
      const std::uint64_t ahead = number - highest_;
      seen_ = ahead < width ? seen_ << ahead : 0;
      highest_ = number;
    }
    const std::uint64_t behind = highest_ - number;
    if (number == 0 || behind >= width || (seen_ >> behind & 1) != 0) return false;
    seen_ |= std::uint64_t{1} << behind;
    return true;
  }

 private:
  static constexpr std::uint64_t width = 64;
  std::uint64_t highest_ = 0, seen_ = 0;  // bit n of seen_: the number highest_ - n has come
};

}  // namespace trellis::ccl::libfabric
