// How much memory a rank of a graph takes, by what it is for, before anything runs.
#pragma once

#include <vector>

#include "schedule/graph/graph.h"

namespace trellis::schedule {

struct PeakMemory {
  std::size_t bytes = 0;                      // when most is there
  std::vector<std::size_t> by_category = {};  // then
  std::uint32_t task = 0;                     // at which it is reached
};

// Tensors that do not last are there from the first task that names them to the last.
PeakMemory peak_memory(const ExecutionGraph&, const RankClass&);

}  // namespace trellis::schedule
