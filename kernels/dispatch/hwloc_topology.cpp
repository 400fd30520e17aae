#include "kernels/dispatch/hwloc_topology.h"

#include <hwloc.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <system_error>

namespace trellis::kernels {
namespace {

[[noreturn]] void trouble(const char* doing) { throw std::system_error(errno, std::generic_category(), doing); }

}  // namespace

void HwlocDeleter::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
void HwlocDeleter::operator()(hwloc_bitmap_s* set) const { hwloc_bitmap_free(set); }

// Without /sys, as in some containers, hwloc's Linux component writes a message to standard error, and then only counts
// the CPUs. Without that component, hwloc counts them silently.
void expect_no_sysfs(hwloc_topology* topology) {
  if (std::getenv("HWLOC_FSROOT") == nullptr && access("/sys/devices/system/cpu", F_OK) != 0)
    hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "linux");
}

// Leaves out devices: hwloc looks for them only when it is asked to.
Topology load_topology() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) trouble("cannot describe this machine's cores");
  Topology topology(made);
  expect_no_sysfs(made);
  if (hwloc_topology_load(made) != 0) trouble("cannot find this machine's cores");
  return topology;
}

ThreadSet usable_threads(const Topology& topology) {
  ThreadSet set(hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology.get())));
  if (!set) throw std::bad_alloc();
  if (hwloc_topology_is_thissystem(topology.get()) != 0 &&
      hwloc_get_cpubind(topology.get(), set.get(), HWLOC_CPUBIND_THREAD) != 0)
    trouble("cannot ask where this thread may run");
  return set;
}

}  // namespace trellis::kernels
