// The lists that a benchmark is given: who sends to whom, and how much of the _v forms each block is.
#pragma once

#include <string>
#include <vector>

#include "schedule/collective.h"

namespace trellis::tools {

// "0:1,1:0" or "[[0,1],[1,0]]"; none from nothing. Throws invalid_argument.
std::vector<schedule::Pair> bench_pairs(const std::string& text);

// What a file of JSON says, [1, 2], {"counts": [1, 2]} or a list for each sender, as parts of the largest count; none
// without a file. Throws invalid_argument, and system_error where there is nothing to read.
std::vector<std::vector<double>> bench_weights(const std::string& path);

}  // namespace trellis::tools
