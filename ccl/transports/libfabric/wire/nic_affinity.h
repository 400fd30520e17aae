// Which network interfaces are near: those on the PCIe and NUMA node of the cores that this process may run on.
#pragma once

#include <string>
#include <vector>

#include "ccl/transports/libfabric/instances/instance_types.h"

struct hwloc_bitmap_s;
struct hwloc_topology;

namespace trellis::ccl::libfabric {

struct FabricNic {
  std::string name;  // of libfabric's domain, often the interface's own
  std::string bus;   // its PCI address, "0000:10:1b.0"; empty: not known
};

// The numbers of the interfaces, the nearest to these threads first; one that hwloc does not know comes after the near
// ones and before the far ones. Processes beside several equally near interfaces begin at different ones: the further
// along a process's cores are in the part of the machine that they share, the later the first one.
std::vector<std::size_t> by_nearness(const std::vector<FabricNic>&, hwloc_topology*, const hwloc_bitmap_s* threads);

// The same on this machine, for this process.
std::vector<std::size_t> by_nearness(const std::vector<FabricNic>&);

// On an instance whose map is known, for a process with these chips: first the interfaces that serve them, in the order
// of the chips, then those behind the same switches, then the others in the given order. Chips that share interfaces
// begin at different ones.
std::vector<std::size_t> by_chips(const std::vector<FabricNic>&, const InstanceType&, const std::vector<int>& chips,
                                  std::vector<std::size_t> order);

}  // namespace trellis::ccl::libfabric
