// How much memory a rank of a graph takes, by category. It is known before anything runs.
#pragma once

#include <vector>

#include "schedule/graph/execution_graph.h"

namespace trellis::schedule {

struct PeakMemory {
  std::size_t bytes = 0;                      // at the peak
  std::vector<std::size_t> by_category = {};  // at the peak
  std::uint32_t task = 0;                     // the task at which the peak is reached
};

// Tensors that are not lasting live from the first task that names them to the last.
PeakMemory peak_memory(const ExecutionGraph&, const RankClass&);

}  // namespace trellis::schedule
