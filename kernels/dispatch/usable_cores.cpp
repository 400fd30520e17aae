#include "kernels/dispatch/usable_cores.h"

#include <hwloc.h>

#include <new>

#include "kernels/dispatch/hwloc_topology.h"

namespace trellis::kernels {
namespace {

void add_caches(UsableCores& p, hwloc_obj_t core) {
  for (hwloc_obj_t o = core; o != nullptr; o = o->parent) {
    if (!hwloc_obj_type_is_dcache(o->type)) continue;
    std::size_t* const levels[] = {&p.l1_bytes, &p.l2_bytes, &p.l3_bytes};
    if (const unsigned level = o->attr->cache.depth; level >= 1 && level <= 3) *levels[level - 1] = o->attr->cache.size;
  }
}

}  // namespace

UsableCores placement() {
  const Topology topology = load_topology();
  const ThreadSet mine = usable_threads(topology);
  // Some virtual machines and containers do not say which threads make a core: then each counts as one.
  const hwloc_obj_type_t kind =
      hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  UsableCores p;
  for (hwloc_obj_t core = nullptr; (core = hwloc_get_next_obj_by_type(topology.get(), kind, core)) != nullptr;) {
    const ThreadSet here(hwloc_bitmap_dup(core->cpuset));
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
