// The order in which a back end issues a draft's instructions, and the engines that it chooses where a kernel leaves
// that open: a list scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/backend/hazards.h"
#include "sim/core/backend/tiles.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

struct OrderOptions {
  std::uint32_t window = 1;  // how far ahead of the oldest instruction that is left it looks; 1: the order of the text
  bool fuse =
      false;  // where tiles lack room, what is behind the window may go first: loops one after another run as one
  bool regions = false;        // Tensor finishes a region before it begins the next one
  bool critical_path = false;  // of two that could start, the one with the longer path behind it; else the older one
};

// Instructions by the time at which each would start on an estimate of the machine: in-order engines, latencies, and
// DMA engines that share their rate. A tile is begun only where its declaration has a slot left, unless nothing else is
// left to do. Writes the chosen engines and rings into the draft.
std::vector<std::uint32_t> list_schedule(Draft&, const DependencyGraph&, const TileGroups&,
                                         const std::vector<std::uint32_t>& slots, const ChipSpec&, const OrderOptions&);

}  // namespace trellis::sim::core
