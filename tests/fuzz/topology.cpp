// Any text as a machine, in whichever format it seems to be: refused with invalid_argument, or a machine whose route
// from the first rank to the last uses only resources that it has.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "sim/cluster/machine/import/import.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::sim;
  try {
    const MachineSpec spec = import_machine("fuzz", {reinterpret_cast<const char*>(data), size});
    double ranks = 1;
    for (const TopologyLevel& level : spec.levels)
      for (Chip dim : level.dims) ranks *= dim;
    if (ranks > 4096) return 0;  // its links take long to count
    const Machine machine(spec);
    std::vector<ResourceId> way;
    if (machine.ranks() > 1) machine.route(0, machine.ranks() - 1, way);
    for (ResourceId r : way)
      if (r >= machine.resources()) std::abort();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
