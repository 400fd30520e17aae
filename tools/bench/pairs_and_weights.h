// Lists that a benchmark is given: pairs of sender and receiver, and block sizes of the _v collectives.
#pragma once

#include <string>
#include <vector>

#include "schedule/collective.h"

namespace trellis::tools {

// "0:1,1:0" or "[[0,1],[1,0]]"; an empty text gives no pairs. Throws invalid_argument.
std::vector<schedule::Pair> bench_pairs(const std::string& text);

// Reads a JSON file: [1, 2], {"counts": [1, 2]} or a list for each sender, as fractions of the largest count. Empty
// without a file. Throws invalid_argument, and system_error when the file can't be read.
std::vector<std::vector<double>> bench_weights(const std::string& path);

}  // namespace trellis::tools
