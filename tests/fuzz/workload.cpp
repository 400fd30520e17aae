// Any text as a workload: refused with invalid_argument, or tasks that wait only for earlier ones and name real ranks.
#include "sim/cluster/workload/workload.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::sim;
  try {
    const Workload workload = workload_of(read_graph("fuzz", {reinterpret_cast<const char*>(data), size}));
    for (std::size_t i = 0; i < workload.parts.size(); ++i) {
      const WorkloadTask& part = workload.parts[i];
      for (std::uint32_t before : part.after)
        if (before >= i) std::abort();
      for (std::uint32_t cell : part.cells)
        if (cell >= workload.cells.size()) std::abort();
      for (Rank member : part.members)
        if (member < 0 || member >= workload.graph->ranks) std::abort();
      if (part.cells.empty() || text(workload, part).empty()) std::abort();
    }
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
