// Which network interfaces are near: those on the PCIe and NUMA node of the cores that this process may run on.
#pragma once

#include <string>
#include <vector>

struct hwloc_bitmap_s;
struct hwloc_topology;

namespace trellis::ccl::libfabric {

struct Nic {
  std::string name;  // of libfabric's domain, often the interface's own
  std::string bus;   // its PCI address, "0000:10:1b.0"; empty: not known
};

// The numbers of the interfaces, the nearest to these threads first. Interfaces at one distance are taken in turn by
// the processes beside them: a process whose cores are further along in the part of the machine that they share begins
// at a later one. One that hwloc does not know is further than a near one and nearer than a far one.
std::vector<std::size_t> by_nearness(const std::vector<Nic>&, hwloc_topology*, const hwloc_bitmap_s* threads);

// The same on this machine, for this process.
std::vector<std::size_t> by_nearness(const std::vector<Nic>&);

}  // namespace trellis::ccl::libfabric
