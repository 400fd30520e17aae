// Amounts of work in a workload's text.
#pragma once

#include <string_view>

#include "schedule/graph/execution_graph.h"

namespace trellis::sim {

// Both throw invalid_argument that names the word and what was expected.
double typed_bytes(std::string_view word);
// "120us", "1.2TFLOP", "300MB": any of them, once each. False: the word does not begin with a digit.
bool add_typed_work(std::string_view word, schedule::GraphTask&);

}  // namespace trellis::sim
