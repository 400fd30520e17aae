// Whether pieces reach a receiver sooner through the caches or past them. Two cores that share a cache pass lines on,
// two that don't fetch every one over the fabric, and memory is then the shorter way; a virtual machine's cores change
// from one to the other while it runs. So each lane goes on measuring what both ends spend on a piece.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/copy.h"

namespace trellis::ccl {

inline constexpr std::size_t least_learned = 4096;  // bytes of a piece that is worth it

std::uint64_t ticks();  // a clock that costs next to nothing, alike on all cores; never 0

class StoresChoice {
 public:
  kernels::Stores next();  // of the next piece: the better, or now and then the other one
  void learn(kernels::Stores, double ticks, std::size_t bytes);

 private:
  static constexpr unsigned round = 32;  // pieces, one of which tries the other way
  double cost_[2] = {};                  // ticks a byte, lately; 0: not known
  unsigned turn_ = 0;
};

}  // namespace trellis::ccl
