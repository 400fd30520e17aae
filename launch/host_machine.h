// A host's packages, memory, caches and cores as a tree, and the hardware threads that ranks get on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trellis::launch {

struct TopoObject {
  enum class Kind : std::uint8_t { machine, package, die, group, memory, cache, core, thread };
  Kind kind = Kind::machine;
  int number = 0;           // of threads and memory: the operating system's; of others: a count from 0
  int level = 0;            // of a cache
  std::uint64_t bytes = 0;  // of a cache, of memory
  bool usable = true;       // of a thread: this process may run on it
  std::vector<TopoObject> parts = {};
};

struct TopoMachine {
  std::string name;
  bool here = true;  // it is the host of this process
  TopoObject whole;
};

// Reads hwloc at every call. Follows taskset. HWLOC_XMLFILE and HWLOC_SYNTHETIC replace the host by another machine.
TopoMachine host_machine();

std::vector<int> usable_threads(const TopoObject&);
std::vector<const TopoObject*> usable_cores(
    const TopoObject&);  // cores with a usable thread; cores that share caches are adjacent

// How cores are shared out to ranks.
enum class CoreAllocationPolicy : std::uint8_t {
  one,    // one thread of one core each, in the smallest part of the machine that has enough cores, for example one L3
  equal,  // the same number of whole cores for each rank, as many as there are
};

// The threads of each rank; empty when there are fewer cores than ranks.
std::vector<std::vector<int>> rank_threads(const TopoMachine&, int ranks, CoreAllocationPolicy);

// A usable thread of each core, then a second one of each, and so on.
std::vector<int> threads_in_turn(const TopoMachine&);

// {0, 1, 2, 8}: "0-2,8"
std::string ranges(std::vector<int>);

}  // namespace trellis::launch
