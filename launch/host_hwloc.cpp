#include <hwloc.h>

#include <utility>

#include "kernels/dispatch/hwloc_topology.h"
#include "launch/host_machine.h"

namespace trellis::launch {
namespace {

class Reader {
 public:
  explicit Reader(const kernels::Topology& topology)
      : allowed_(kernels::usable_threads(topology)),
        knows_cores_(hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE) > 0) {}

  TopoObject part(hwloc_obj_t o) const {
    TopoObject p = plain(o);
    for (hwloc_obj_t child = o->first_child; child != nullptr; child = child->next_sibling)
      p.parts.push_back(part(child));
    // In hwloc, memory is attached beside the cores near it; here it contains them. A second memory, such as a
    // package's fast one, counts as near, too.
    for (hwloc_obj_t memory = o->memory_first_child; memory != nullptr; memory = memory->next_sibling) {
      hwloc_obj_t node = memory;
      while (node->type != HWLOC_OBJ_NUMANODE) node = node->memory_first_child;  // behind a memory-side cache
      TopoObject m{.kind = TopoObject::Kind::memory,
                   .number = number(node->os_index),
                   .bytes = node->attr->numanode.local_memory};
      if (memory == o->memory_first_child) std::swap(m.parts, p.parts);
      p.parts.push_back(std::move(m));
    }
    return p;
  }

 private:
  static int number(unsigned n) { return n == HWLOC_UNKNOWN_INDEX ? 0 : static_cast<int>(n); }

  // The object without what it contains. A hardware thread becomes a core where a virtual machine reports no cores.
  TopoObject plain(hwloc_obj_t o) const {
    const int at = number(o->logical_index);
    switch (o->type) {
      case HWLOC_OBJ_MACHINE:
        return {.kind = TopoObject::Kind::machine};
      case HWLOC_OBJ_PACKAGE:
        return {.kind = TopoObject::Kind::package, .number = at};
      case HWLOC_OBJ_DIE:
        return {.kind = TopoObject::Kind::die, .number = at};
      case HWLOC_OBJ_CORE:
        return {.kind = TopoObject::Kind::core, .number = at};
      case HWLOC_OBJ_PU: {
        TopoObject thread{.kind = TopoObject::Kind::thread,
                          .number = number(o->os_index),
                          .usable = hwloc_bitmap_isset(allowed_.get(), o->os_index) != 0};
        if (knows_cores_) return thread;
        return {.kind = TopoObject::Kind::core, .number = at, .parts = {std::move(thread)}};
      }
      default:
        if (!hwloc_obj_type_is_dcache(o->type)) return {.kind = TopoObject::Kind::group, .number = at};
        return {.kind = TopoObject::Kind::cache,
                .number = at,
                .level = static_cast<int>(o->attr->cache.depth),
                .bytes = o->attr->cache.size};
    }
  }

  kernels::ThreadSet allowed_;
  bool knows_cores_;
};

}  // namespace

TopoMachine host_machine() {
  const kernels::Topology topology = kernels::load_topology();
  const bool here = hwloc_topology_is_thissystem(topology.get()) != 0;
  return {"host", here, Reader(topology).part(hwloc_get_root_obj(topology.get()))};
}

}  // namespace trellis::launch
