// Several of a machine, joined as its file says they are.
#pragma once

#include <optional>
#include <string_view>

#include "sim/machine.h"

namespace trellis::sim {

std::optional<Chip> several(std::string_view& name);  // "NAME x 4": the number; the name becomes what stands before it
MachineSpec joined(MachineSpec one, Chip count,
                   std::string_view name);  // throws invalid_argument where nothing joins it

}  // namespace trellis::sim
