// Estimates how long an instruction would take on an engine, for what the back end decides before there is a program.
#pragma once

#include <array>
#include <vector>

#include "sim/core/backend/unscheduled_program.h"
#include "sim/core/run/instruction_cost.h"

namespace trellis::sim::core {

struct CostEstimate {
  Time interval = 0;  // until its engine can start the next; of a DMA: the time to trigger it
  Time latency = 0;  // from the start until its results are visible; of a DMA: from the trigger's end to the first byte
  Time moving = 0;   // of a DMA: how long its bytes occupy the DMA engines, taken together
};

class CostEstimator {
 public:
  CostEstimator(const UnscheduledProgram&, const ChipSpec&);

  // Whether the engine may run the instruction, and the chip has a cost for it there.
  bool may_run(std::uint32_t instruction, Engine) const;
  CostEstimate of(std::uint32_t instruction, Engine) const;

 private:
  const CostRow& row_of(const InstructionKind*, Engine) const;

  const UnscheduledProgram& draft_;
  const ChipSpec& chip_;
  mutable std::array<std::pair<const InstructionKind*, CostRow>, engine_count> rows_ = {};
};

}  // namespace trellis::sim::core
