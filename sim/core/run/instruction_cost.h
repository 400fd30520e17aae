// The cost of an instruction on a chip, computed once before a program runs.
#pragma once

#include <vector>

#include "sim/core/program/instruction_kind.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

struct InstructionCost {
  Time interval = 0;  // until its engine can start the next
  Time latency = 0;   // from the start until its results are visible
  double flops = 0;
  bool shares_sbuf_port = false, shares_psum_port = false;
};

// Throws invalid_argument if the chip's file has no cost for the kind on its engine.
InstructionCost cost_of(const BoundInstruction&, const ChipSpec&);
InstructionCost cost_of(const BoundInstruction&, const ChipSpec&,
                        const CostRow&);  // the chip's row for the kind on its engine

// One DMA engine's part of an instruction.
struct DmaEngineShare {
  Time time = 0;
  double bytes = 0;
};

struct DmaWork {
  Time trigger = 0;  // on the engine that triggers
  Time start = 0;    // from the end of the trigger to the first byte
  double bytes = 0, hbm_read = 0, hbm_written = 0;
  std::uint64_t descriptors = 0;
  std::vector<DmaEngineShare> shares;  // of each engine
};

DmaWork dma_work(const BoundInstruction&, const ChipSpec&);

double element_cycles(const BoundInstruction&, const CostRow&);  // for kinds without a rule of their own

}  // namespace trellis::sim::core
