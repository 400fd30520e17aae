// Which instructions of a draft depend on which: true, anti and output dependencies through memory.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/backend/unscheduled_program.h"

namespace trellis::sim::core {

struct DependencyGraph {
  std::vector<std::uint32_t> first;    // of each instruction: where its list begins; then the end of the last list
  std::vector<std::uint32_t> earlier;  // the lists: what it depends on
};

// Marks the buffers whose accesses need no order: those in HBM that are only read, or that are never read and of which
// each place is written at most once.
std::vector<bool> unordered_buffers(const NeuronCoreProgram&);

// Finds for each instruction the earlier ones that it depends on. A buffer without a place counts as memory of its own:
// instructions on a tile do not depend on those on tiles that the same declaration made before.
DependencyGraph dependency_graph(const UnscheduledProgram&, const std::vector<bool>& unordered);

}  // namespace trellis::sim::core
