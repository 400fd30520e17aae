// Divides message sizes into ranges, each with the algorithm config that was the fastest in a sweep, or nearly so: a
// change must be worth it (schedule/algorithms/size_range_tuner.h).
#pragma once

#include <vector>

#include "sim/cluster/choose/pricer.h"

namespace trellis::sim {

// This config is chosen from `from` bytes on, until the next range begins.
struct BestConfigRange {
  double from = 0;
  AlgorithmConfig config;
  Time time = 0;  // at `at` bytes
  double at = 0;  // where the range begins; of the first range, the least size that was priced
};

// Costs may be in any order. The first range begins at 0. With `family`, configs that differ only in channels or
// segments share a range.
std::vector<BestConfigRange> regions_of(std::vector<ConfigCost>, bool family);

}  // namespace trellis::sim
