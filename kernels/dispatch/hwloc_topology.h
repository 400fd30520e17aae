// hwloc's description of this machine. Files that use it include hwloc.h themselves.
#pragma once

#include <memory>

struct hwloc_bitmap_s;
struct hwloc_topology;

namespace trellis::kernels {

struct HwlocDeleter {
  void operator()(hwloc_topology*) const;
  void operator()(hwloc_bitmap_s*) const;
};
using Topology = std::unique_ptr<hwloc_topology, HwlocDeleter>;
using ThreadSet = std::unique_ptr<hwloc_bitmap_s, HwlocDeleter>;

// Memory, packages, caches and cores, asked anew at every call: that takes milliseconds. HWLOC_XMLFILE and
// HWLOC_SYNTHETIC put another machine in this one's place.
Topology load_topology();

void expect_no_sysfs(hwloc_topology*);  // to be called before loading: keeps hwloc silent without /sys

// The hardware threads that the calling thread may run on; all of them if the topology is another machine's.
ThreadSet usable_threads(const Topology&);

}  // namespace trellis::kernels
