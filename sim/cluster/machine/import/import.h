// Importers for machine descriptions of other tools, each from a file's text to a MachineSpec. What a MachineSpec
// cannot express is refused by name, not dropped. They throw invalid_argument.
#pragma once

#include <string_view>

#include "sim/cluster/machine/machine.h"

namespace trellis::sim {

// ASTRA-sim's analytical network: topology (Ring, FullyConnected, Switch), npus_count, bandwidth (in 2^30 bytes a
// second) and latency (ns) for each dimension, innermost first.
MachineSpec import_astra(std::string_view name, std::string_view text);

// A SimGrid platform of one cluster: a torus, a dragonfly, a fat tree, or hosts on a switch. A shared backbone that can
// never be the bottleneck only adds its latency; any other is refused. speed and loopback are not used.
MachineSpec import_simgrid(std::string_view name, std::string_view text);

// NCCL's or RCCL's topology of a host: GPUs joined by NVLink or xGMI, through switches, by links between all pairs, or
// by links between some (then numbered along a ring of links if there is one); or by PCIe.
MachineSpec import_nccl(std::string_view name, std::string_view text);

// hwloc's topology of a host. If it has several GPUs or coprocessors, these are the ranks, joined by their
// NVLinkBandwidth, which must be uniform; if it has none, by the slowest of their PCIe links to one switch. Otherwise
// its cores are the ranks, by package, at assumed rates. Its fastest network interface joins several hosts.
MachineSpec import_hwloc(std::string_view name, std::string_view text);

// Detects which of these formats the text has, or reads it as a machine file of Trellis.
MachineSpec import_machine(std::string_view name, std::string_view text);

}  // namespace trellis::sim
