// The back end: from a kernel's instructions to a program, with engines, an order, places and semaphores.
#pragma once

#include <array>
#include <vector>

#include "sim/core/backend/draft.h"
#include "sim/core/backend/spill.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

struct BackEndOptions {
  std::uint32_t window = 1;    // of the list scheduler; 1: each engine keeps the order of the text
  bool critical_path = false;  // its rule; else the oldest first
  bool regions = false;        // each is scheduled by itself: OrderOptions
  bool fuse = false;           // loops, where their tiles have no room: OrderOptions
  bool spill = false;          // what SBUF has no room for waits in HBM; else it is refused
  int copies = 2;  // tiles of one declaration in flight, for each that is needed at once, as far as they fit
};

struct Assembled {
  EngineProgram program;
  std::vector<std::uint32_t> order;       // of each of its instructions: the number in the draft
  std::array<std::int64_t, 2> most = {};  // bytes of a partition that live tiles take at once, by Space
  std::uint32_t written = 0;              // instructions of the draft; those from there on move spilled tiles
  Spills spills;
};

// Throws invalid_argument for tiles that do not fit, and for instructions that the chip lacks.
Assembled assemble(Draft, const ChipSpec&, const BackEndOptions& = {});

}  // namespace trellis::sim::core
