// A graph as text, one task a line, in the form that `trellis sim` reads (sim/cluster/workload/workload.h).
#pragma once

#include <string>

#include "schedule/graph/execution_graph.h"

namespace trellis::schedule {

// The form has no words for tensors and memory. Throws invalid_argument with the fault that match() finds in the graph,
// if any.
std::string graph_text(const ExecutionGraph&);

}  // namespace trellis::schedule
