// Adds the instructions that move tiles to HBM and back where SBUF has no room for them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/backend/draft.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

struct SpillTotals {
  std::int64_t bytes = 0;  // written to HBM and read back
  std::int64_t moves = 0;
};

// Gives each tile in SBUF a place, in the order of its instructions. Where there is none, the tile whose next use is
// farthest goes to HBM, and comes back before that use. Adds the instructions that do so to the draft and the order.
// Throws invalid_argument where one instruction's tiles do not fit.
SpillTotals spill_tiles(Draft&, std::vector<std::uint32_t>& order, const ChipSpec&);

}  // namespace trellis::sim::core
