// A step of all ranks as a graph, the value that is proved, printed and priced. Ranks that do the same are a class.
#pragma once

#include <vector>

#include "schedule/graph/execution_graph.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

// `classes`: as classes_of gives them. With several steps, a step also waits for what the one before
// began for it; what the last step begins ends with the graph.
schedule::ExecutionGraph graph_of(const std::vector<RankStep>& classes, int steps = 1);

}  // namespace trellis::train
