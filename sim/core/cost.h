// What an instruction costs on a chip, found once before a program runs.
#pragma once

#include <vector>

#include "sim/chip.h"
#include "sim/core/kind.h"

namespace trellis::sim::core {

struct Cost {
  Time interval = 0;  // until its engine can start the next
  Time latency = 0;   // from start to results that can be seen
  double flops = 0;
  bool shares_sbuf_port = false, shares_psum_port = false;
};

// Throws invalid_argument where the chip's file has no cost for the kind on its engine.
Cost cost_of(const Call&, const ChipSpec&);
Cost cost_of(const Call&, const ChipSpec&, const CostRow&);  // the chip's row for the kind on its engine

// One DMA engine's part of an instruction.
struct DmaShare {
  Time time = 0;
  double bytes = 0;
};

struct DmaWork {
  Time trigger = 0;  // on the engine that asks
  Time start = 0;    // end of trigger to first byte
  double bytes = 0, hbm_read = 0, hbm_written = 0;
  std::uint64_t descriptors = 0;
  std::vector<DmaShare> shares;  // of each engine
};

DmaWork dma_work(const Call&, const ChipSpec&);

double element_cycles(const Call&, const CostRow&);  // of kinds without a rule of their own

}  // namespace trellis::sim::core
