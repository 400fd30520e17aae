// The order in which a back end issues a draft's instructions, and the engines that it chooses where a kernel leaves
// that open: a list scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/backend/dependency_graph.h"
#include "sim/core/backend/tile_pools.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

struct ListSchedulerOptions {
  std::uint32_t window = 1;  // instructions considered, from the oldest not started; 1: in the order of the text
  bool fuse = false;  // when tiles lack room, the window grows: loops that follow each other in the text then overlap
  bool regions = false;        // Tensor finishes a region before it begins the next one
  bool critical_path = false;  // prefers the instruction with the longest path to the program's end; else the oldest
};

// Orders instructions by the time at which each would start on an estimate of the machine: in-order engines, latencies,
// and DMA engines that share their rate. A tile is begun only where its declaration has a slot left, unless nothing
// else is left to do. Writes the chosen engines and rings into the draft.
std::vector<std::uint32_t> list_schedule(UnscheduledProgram&, const DependencyGraph&, const TilePools&,
                                         const std::vector<std::uint32_t>& slots, const ChipSpec&,
                                         const ListSchedulerOptions&);

}  // namespace trellis::sim::core
