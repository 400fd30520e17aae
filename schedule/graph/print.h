// A graph as text, one task a line, in the form that `trellis sim` reads (sim/cluster/workload/workload.h).
#pragma once

#include <string>

#include "schedule/graph/graph.h"

namespace trellis::schedule {

// Shapes, types and tensors have no words there. Throws invalid_argument with the fault of a graph that is not proved.
std::string graph_text(const ExecutionGraph&);

}  // namespace trellis::schedule
