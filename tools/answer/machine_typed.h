// Finds the simulated machine that a user typed: a name, a shape, or a file in our format or another tool's.
#pragma once

#include <string>
#include <vector>

#include "sim/machine/machine.h"

namespace trellis::tools {

// For --help: what can be typed.
inline constexpr const char* machine_grammar =
    "Machines are data files of sim/machines, several of one (\"trn2.48xlarge x 4\"), or shapes: torus:16x32x32, "
    "ring:64,\n"
    "switch:8, clos:64, fattree:4x8x16, dragonfly:4x8x33, full:8, and these within each other: "
    "cores:4/torus:4x4/clos:16.\n"
    "A path is a machine file of ours, an ASTRA-sim network (.yml), a SimGrid platform, an NCCL topology or what "
    "lstopo\n"
    "writes of a host (.xml); several of one as well (\"rack.machine x 4\").";
inline constexpr const char* change_grammar =
    "KEY=VALUE of the machine's figures; dead:0-1 or slow:0-1:0.5, the first link of the way from one rank to the "
    "other; nic:RANK:0.5, hbm:RANK:0.5 or straggler:RANK:0.5, its speed as a part of the usual; repeatable";

// Applies the changes as sim::what_if reads them. Throws invalid_argument, naming the known machines, and system_error.
sim::MachineSpec typed_machine(const std::string& typed, const std::vector<std::string>& changes = {});

}  // namespace trellis::tools
