// Test data of small whole numbers, whose results are known in closed form for any algorithm: checks results of any
// size, and fills buffers at the speed of memory.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "ccl/communicator.h"

namespace trellis::measure {

// The pattern of one operation: `calls` has one call for each rank. At each element two ranks contribute numbers from 1
// to 3, the others the neutral element, so that sums stay exact in every type and for any number of ranks. With `ones`,
// each contributes 1; throws invalid_argument where a sum of some ranks' ones would be rounded.
class DataPattern {
 public:
  DataPattern(std::span<const ccl::Call> calls, ccl::Rank rank, std::uint64_t seed, bool ones = false);

  void fill(void* input);
  std::uint64_t wrong(const void* output);  // wrong elements of this rank's output

 private:
  using Tile = std::vector<std::byte>;
  struct Part {
    std::size_t first = 0, elements = 0;
    std::size_t phase = 0;  // position of its first element in the tile
    ccl::Rank source = 0;   // the rank whose data it is, or everybody
  };
  static constexpr ccl::Rank everybody = -1;

  const Tile& tile(ccl::Rank source);
  double value(ccl::Rank source, std::size_t index) const;
  double total(std::size_t index) const;

  ccl::Call call_;
  ccl::Rank rank_, ranks_;
  std::uint64_t seed_;
  bool ones_;
  std::vector<Part> inputs_, outputs_;
  std::map<ccl::Rank, Tile> tiles_;
};

// Throws if such a call can't have a pattern of ones, because a sum of ones could be rounded.
void check_ones(const ccl::Call&, ccl::Rank ranks);

// Reads every cache line, as a user of the data would.
void look_through(const void* data, std::size_t bytes);

}  // namespace trellis::measure
