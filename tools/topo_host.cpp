#include <hwloc.h>

#include <cerrno>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include "tools/topo_machine.h"

namespace trellis::tools {
namespace {

struct Destroy {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
  void operator()(hwloc_bitmap_t set) const { hwloc_bitmap_free(set); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, Destroy>;
using Set = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, Destroy>;

[[noreturn]] void trouble(const char* doing) { throw std::system_error(errno, std::generic_category(), doing); }

Topology loaded() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) trouble("cannot describe this machine's cores");
  Topology topology(made);
  if (hwloc_topology_load(made) != 0) trouble("cannot find this machine's cores");
  return topology;
}

// The threads that this one may run on; of a machine that is only described, all.
Set allowed(hwloc_topology_t topology) {
  Set set(hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology)));
  if (!set) throw std::bad_alloc();
  if (hwloc_topology_is_thissystem(topology) != 0 && hwloc_get_cpubind(topology, set.get(), HWLOC_CPUBIND_THREAD) != 0)
    trouble("cannot ask where this thread may run");
  return set;
}

class Reader {
 public:
  explicit Reader(hwloc_topology_t topology)
      : allowed_(allowed(topology)), knows_cores_(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0) {}

  Part part(hwloc_obj_t o) const {
    Part p = plain(o);
    for (hwloc_obj_t child = o->first_child; child != nullptr; child = child->next_sibling)
      p.parts.push_back(part(child));
    // Memory hangs beside the cores that are near it, and contains them here. The second of two, such as the fast one
    // of a package, is near all the same.
    for (hwloc_obj_t memory = o->memory_first_child; memory != nullptr; memory = memory->next_sibling) {
      hwloc_obj_t node = memory;
      while (node->type != HWLOC_OBJ_NUMANODE) node = node->memory_first_child;  // behind a cache of memory
      Part m{.kind = Part::Kind::memory, .number = number(node->os_index), .bytes = node->attr->numanode.local_memory};
      if (memory == o->memory_first_child) std::swap(m.parts, p.parts);
      p.parts.push_back(std::move(m));
    }
    return p;
  }

 private:
  static int number(unsigned n) { return n == HWLOC_UNKNOWN_INDEX ? 0 : static_cast<int>(n); }

  // Without what is in it, but for a thread that counts as a core where a virtual machine does not tell of cores.
  Part plain(hwloc_obj_t o) const {
    const int at = number(o->logical_index);
    switch (o->type) {
      case HWLOC_OBJ_MACHINE:
        return {.kind = Part::Kind::machine};
      case HWLOC_OBJ_PACKAGE:
        return {.kind = Part::Kind::package, .number = at};
      case HWLOC_OBJ_DIE:
        return {.kind = Part::Kind::die, .number = at};
      case HWLOC_OBJ_CORE:
        return {.kind = Part::Kind::core, .number = at};
      case HWLOC_OBJ_PU: {
        Part thread{.kind = Part::Kind::thread,
                    .number = number(o->os_index),
                    .usable = hwloc_bitmap_isset(allowed_.get(), o->os_index) != 0};
        if (knows_cores_) return thread;
        return {.kind = Part::Kind::core, .number = at, .parts = {std::move(thread)}};
      }
      default:
        if (!hwloc_obj_type_is_dcache(o->type)) return {.kind = Part::Kind::group, .number = at};
        return {.kind = Part::Kind::cache,
                .number = at,
                .level = static_cast<int>(o->attr->cache.depth),
                .bytes = o->attr->cache.size};
    }
  }

  Set allowed_;
  bool knows_cores_;
};

}  // namespace

TopoMachine host_machine() {
  const Topology topology = loaded();
  const bool here = hwloc_topology_is_thissystem(topology.get()) != 0;
  return {"host", here, Reader(topology.get()).part(hwloc_get_root_obj(topology.get()))};
}

}  // namespace trellis::tools
