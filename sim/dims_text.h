// "4x4x8" as numbers, as machine files and shapes write them.
#pragma once

#include <string_view>
#include <vector>

#include "sim/fabric.h"

namespace trellis::sim {

std::vector<Chip> dims_of(std::string_view text);  // throws invalid_argument

}  // namespace trellis::sim
