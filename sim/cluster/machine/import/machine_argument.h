// The machine that a user typed: a name, a shape, or a file in our format or another tool's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/machine/machine.h"

namespace trellis::sim {

// For help texts: what can be typed.
inline constexpr const char* machine_grammar =
    "Machines are data files of sim/machines, several of one (\"trn2.48xlarge x 4\"), or shapes: torus:16x32x32, "
    "ring:64,\n"
    "switch:8, clos:64, fattree:4x8x16, dragonfly:4x8x33, full:8, and these within each other: "
    "cores:4/torus:4x4/clos:16.\n"
    "A path is a machine file of ours, an ASTRA-sim network (.yml), a SimGrid platform, an NCCL topology or what "
    "lstopo\n"
    "writes of a host (.xml); several of one as well (\"rack.machine x 4\").";
inline constexpr const char* change_grammar =
    "KEY=VALUE of the machine's figures; dead:0-1 or slow:0-1:0.5, the first link on the path from rank 0 to rank 1 "
    "dead, or at 0.5 of its rate; nic:RANK:0.5, hbm:RANK:0.5 or straggler:RANK:0.5, at 0.5 of its speed; repeatable";

// The machine that `typed` names, with the changes that what_if() makes of `changes`. Throws invalid_argument, naming
// the known machines, and system_error.
MachineSpec typed_machine(const std::string& typed, const std::vector<std::string>& changes = {});

// The two halves, for callers that read files themselves: the path that `typed` names ("rack.machine x 4" names
// rack.machine), or nullopt for a name or a shape; and the machine of that file's text.
std::optional<std::string> machine_file(const std::string& typed);
MachineSpec machine_of_file(const std::string& typed, const std::string& path, std::string_view text);

}  // namespace trellis::sim
