#include "sim/core/backend/cost_estimator.h"

#include <algorithm>
#include <numeric>

namespace trellis::sim::core {

CostEstimator::CostEstimator(const UnscheduledProgram& draft, const ChipSpec& chip) : draft_(draft), chip_(chip) {}

const CostRow& CostEstimator::row_of(const InstructionKind* kind, Engine engine) const {
  auto& [known, row] = rows_[static_cast<std::size_t>(engine)];
  if (known != kind) {
    known = kind;
    row = chip_.cost(kind->name, static_cast<int>(engine));
  }
  return row;
}

bool CostEstimator::may_run(std::uint32_t at, Engine engine) const {
  const Instruction& i = draft_.program.instructions[at];
  if (!holds(draft_.engines[at], engine)) return false;
  if (std::ranges::find(i.kind->engines, engine) == i.kind->engines.end()) return false;
  return i.kind->dma || i.kind->sequencer || i.kind->cycles != nullptr || row_of(i.kind, engine).there;
}

CostEstimate CostEstimator::of(std::uint32_t at, Engine engine) const {
  Instruction i = draft_.program.instructions[at];
  i.engine = engine;
  const BoundInstruction call(draft_.program, i);
  if (!i.kind->dma) {
    const InstructionCost cost = cost_of(call, chip_, row_of(i.kind, engine));
    return {cost.interval, cost.latency, 0};
  }
  const DmaWork work = dma_work(call, chip_);
  Time longest = 0, all = 0;
  for (const DmaEngineShare& share : work.shares) {
    longest = std::max(longest, share.time);
    all += share.time;
  }
  // The time for which the transfer occupies the DMA engines: the sum of its shares' times, divided by the number of
  // engines, but at least a quarter of the longest share, in case few engines do most of the work. Only a quarter, as
  // the other engines can serve other transfers meanwhile.
  return {work.trigger, work.start, std::max(all / chip_.dma.engines, longest / 4)};
}

}  // namespace trellis::sim::core
