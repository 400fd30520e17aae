// The back end: makes a program of a kernel's instructions. It chooses engines, the order of issue and the tiles'
// places, and adds semaphores.
#pragma once

#include <array>
#include <vector>

#include "sim/core/backend/spill.h"
#include "sim/core/backend/unscheduled_program.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

struct BackEndOptions {
  std::uint32_t window = 1;    // how far ahead the list scheduler looks; 1: each engine keeps the order of the text
  bool critical_path = false;  // prefers the instruction with the longest path to the program's end, else the oldest
  bool regions = false;        // as in ListSchedulerOptions
  bool fuse = false;           // as in ListSchedulerOptions
  bool spill = false;          // tiles that SBUF has no room for wait in HBM; else they are refused
  int copies = 2;              // slots for each tile that a declaration has live at once, if there is room
};

struct BackEndResult {
  NeuronCoreProgram program;
  std::vector<std::uint32_t> order;       // of each of the program's instructions: its number in the draft
  std::array<std::int64_t, 2> most = {};  // bytes of a partition that live tiles take at once, by MemorySpace
  std::uint32_t written = 0;              // how many instructions the draft had; higher numbers move spilled tiles
  SpillTotals spills;
};

// Throws invalid_argument for tiles that do not fit, and for instructions that the chip lacks.
BackEndResult assemble(UnscheduledProgram, const ChipSpec&, const BackEndOptions& = {});

}  // namespace trellis::sim::core
