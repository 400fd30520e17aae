// A step of all ranks as a graph, the value that is proved, printed and priced. Ranks that do the same are a class.
#pragma once

#include <vector>

#include "schedule/graph/graph.h"
#include "train/whole/step.h"

namespace trellis::train {

// `classes`: as classes_of gives them. Of several steps after each other, also what a step begins for the next one is
// waited for; in the last step it ends with the graph.
schedule::ExecutionGraph graph_of(const std::vector<Step>& classes, int steps = 1);

}  // namespace trellis::train
