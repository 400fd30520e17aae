#include "kernels/placement.h"

#include <hwloc.h>

#include <cerrno>
#include <memory>
#include <system_error>
#include <type_traits>

namespace trellis::kernels {
namespace {

[[noreturn]] void trouble(const char* doing) { throw std::system_error(errno, std::generic_category(), doing); }

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
  void operator()(hwloc_bitmap_t set) const { hwloc_bitmap_free(set); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;
using Set = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, Destroy>;

// Packages, caches and cores; hwloc looks for devices only when it is asked to.
Topology loaded() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) trouble("cannot describe this machine's cores");
  Topology topology(made);
  if (hwloc_topology_load(made) != 0) trouble("cannot find this machine's cores");
  return topology;
}

Set allowed(hwloc_topology_t topology) {
  Set set(hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology)));
  if (!set) throw std::bad_alloc();
  // A description of some other machine (HWLOC_XMLFILE, HWLOC_SYNTHETIC) knows no threads: all of it is allowed.
  if (hwloc_topology_is_thissystem(topology) != 0 && hwloc_get_cpubind(topology, set.get(), HWLOC_CPUBIND_THREAD) != 0)
    trouble("cannot ask where this thread may run");
  return set;
}

void add_caches(Placement& p, hwloc_obj_t core) {
  for (hwloc_obj_t o = core; o != nullptr; o = o->parent) {
    if (!hwloc_obj_type_is_dcache(o->type)) continue;
    std::size_t* const levels[] = {&p.l1_bytes, &p.l2_bytes, &p.l3_bytes};
    if (const unsigned level = o->attr->cache.depth; level >= 1 && level <= 3) *levels[level - 1] = o->attr->cache.size;
  }
}

}  // namespace

Placement placement() {
  const Topology topology = loaded();
  const Set mine = allowed(topology.get());
  // Some virtual machines and containers do not say which threads make a core: then each counts as one.
  const hwloc_obj_type_t kind =
      hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  Placement p;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology.get(), kind, core)) != nullptr;) {
    const Set here(hwloc_bitmap_dup(core->cpuset));
    if (!here) throw std::bad_alloc();
    hwloc_bitmap_and(here.get(), here.get(), mine.get());
    if (hwloc_bitmap_iszero(here.get())) continue;
    if (p.cores.empty()) add_caches(p, core);
    p.cores.push_back(hwloc_bitmap_first(here.get()));
  }
  if (p.cores.empty()) p.cores.push_back(0);
  return p;
}

}  // namespace trellis::kernels
