// Reads the simulated machine or chip that the command line names, and records it in the origin of the command's
// output.
#pragma once

#include <string>
#include <vector>

#include "sim/cluster/machine/machine.h"

namespace trellis::tools {

// For help texts of --figures.
inline constexpr const char* figures_help =
    "A file of figures that replace the machine's, as `trellis calibrate` writes it";

// Returns sim::typed_machine, and notes it in the output's origin with its what-ifs, its era ("": the usual one) and a
// digest of its figures. `figures`: a file whose figures replace the machine's before the what-ifs apply; empty: none.
sim::MachineSpec asked_machine(const std::string& typed, const std::vector<std::string>& what_if = {},
                               const std::string& era = "", const std::string& figures = "");
// Like asked_machine() without what-ifs, but adds nothing to the output's origin.
sim::MachineSpec machine_with(const std::string& typed, const std::string& figures);

// The warning in every answer about a machine whose figures are all assumed; "" for other machines.
std::string rests_on(const sim::MachineSpec&);

void note_chip(const std::string& name, const std::vector<std::string>& what_if, const sim::Figures&);

}  // namespace trellis::tools
