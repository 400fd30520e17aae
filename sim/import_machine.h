// Machines as other tools describe them, read as our own: each a function from a file's text to a MachineSpec. What a
// format says and a MachineSpec has no words for is refused, naming it, rather than left out. Throw invalid_argument.
#pragma once

#include <string_view>

#include "sim/machine.h"

namespace trellis::sim {

// ASTRA-sim's analytical network: topology (Ring, FullyConnected, Switch), npus_count, bandwidth (in 2^30 bytes a
// second) and latency (ns) by dimension, innermost first.
MachineSpec import_astra(std::string_view name, std::string_view text);

// A SimGrid platform of one cluster: a torus, a dragonfly, a fat tree, or hosts on a switch; a backbone that all share
// is a switch's way up. speed and loopback are not used.
MachineSpec import_simgrid(std::string_view name, std::string_view text);

// NCCL's topology of a host: gpus that reach each other over NVLink, through switches or directly, or over PCIe.
MachineSpec import_nccl(std::string_view name, std::string_view text);

// hwloc's topology of a host: where it has several gpus or coprocessors these, by their NVLinkBandwidth where all are
// joined alike, else by the slowest of their PCIe links to one switch; else its cores, by package, at assumed rates.
// Its fastest network interface joins several.
MachineSpec import_hwloc(std::string_view name, std::string_view text);

// Whichever of these the text is, or a machine file of ours.
MachineSpec import_machine(std::string_view name, std::string_view text);

}  // namespace trellis::sim
