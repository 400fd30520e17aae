// The simulated machine or chip of the command line, noted as what the command's results depend on.
#pragma once

#include <string>
#include <vector>

#include "sim/cluster/machine/machine.h"

namespace trellis::tools {

// sim::typed_machine, noted with its what-ifs, its era ("": the usual one) and a digest of its figures.
sim::MachineSpec asked_machine(const std::string& typed, const std::vector<std::string>& what_if = {},
                               const std::string& era = "");

// What every answer about such a machine says: that none of its figures was measured; "" where some was.
std::string rests_on(const sim::MachineSpec&);

void note_chip(const std::string& name, const std::vector<std::string>& what_if, const sim::Figures&);

}  // namespace trellis::tools
