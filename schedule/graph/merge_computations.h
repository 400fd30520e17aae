// A graph with fewer tasks: computations that follow each other with nothing in between become one.
#pragma once

#include "schedule/graph/execution_graph.h"

namespace trellis::schedule {

// FLOPs, bytes and times are added; tensors are left out. What is exchanged stays as it is.
ExecutionGraph merged(const ExecutionGraph&);

}  // namespace trellis::schedule
