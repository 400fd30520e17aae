// Several of one machine, joined as its file's `cluster` line says.
#pragma once

#include <optional>
#include <string_view>

#include "sim/cluster/machine/machine.h"

namespace trellis::sim {

std::optional<Chip> several(std::string_view& name);  // "NAME x 4": returns the number and cuts `name` down to NAME
MachineSpec joined(MachineSpec one, Chip count,
                   std::string_view name);  // throws invalid_argument if the machine has no cluster line

}  // namespace trellis::sim
