// Parses dimensions such as "4x4x8", as machine files and shapes write them.
#pragma once

#include <string_view>
#include <vector>

#include "sim/cluster/machine/fabric.h"

namespace trellis::sim {

std::vector<Chip> dims_of(std::string_view text);  // throws invalid_argument

}  // namespace trellis::sim
