// Adds the instructions that move tiles to HBM and back where SBUF has no room for them.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/backend/unscheduled_program.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

struct SpillTotals {
  std::int64_t bytes = 0;  // written to HBM and read back
  std::int64_t moves = 0;
};

// Goes through the instructions in order and gives each tile that they use a place in SBUF. If none is free, the tile
// whose next use is farthest gives up its place: it is copied to HBM, unless HBM has its contents already, and back
// before that use. Adds the instructions for these copies to the draft and the order. Throws invalid_argument if the
// tiles of one instruction do not fit.
SpillTotals spill_tiles(UnscheduledProgram&, std::vector<std::uint32_t>& order, const ChipSpec&);

}  // namespace trellis::sim::core
