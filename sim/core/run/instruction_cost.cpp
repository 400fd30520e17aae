#include "sim/core/run/instruction_cost.h"

#include <algorithm>

#include "text/refuse.h"

namespace trellis::sim::core {
namespace {

bool touches(const BoundInstruction& call, MemorySpace space) {
  const auto lies = [&](const View& v) { return call.space(v) == space; };
  return std::ranges::any_of(call.outputs, lies) || std::ranges::any_of(call.inputs, lies);
}

}  // namespace

double element_cycles(const BoundInstruction& call, const CostRow& row) {
  std::int64_t elements = 0;
  for (const View& v : call.outputs) elements = std::max(elements, v.elements());
  for (const View& v : call.inputs) elements = std::max(elements, v.elements());
  return row.fixed + row.element * static_cast<double>(elements);
}

InstructionCost cost_of(const BoundInstruction& call, const ChipSpec& chip) {
  return cost_of(call, chip, chip.cost(call.instruction.kind->name, static_cast<int>(call.instruction.engine)));
}

InstructionCost cost_of(const BoundInstruction& call, const ChipSpec& chip, const CostRow& row) {
  const InstructionKind& kind = *call.instruction.kind;
  const Engine engine = call.instruction.engine;
  const EngineSpec& spec = chip.engine[static_cast<std::size_t>(engine)];
  if (kind.sequencer) return {.interval = chip.semaphore_instruction, .latency = chip.semaphore_instruction};
  if (!row.there && kind.cycles == nullptr)
    text::refuse("{} has no {} on its {} engine (no cost.{}.{} in its file)", chip.name, kind.name, name(engine),
                 kind.name, name(engine));
  const double cycles = kind.cycles != nullptr ? kind.cycles(call, row, chip) : element_cycles(call, row);
  InstructionCost cost;
  cost.interval = cycles_time(std::max(cycles, spec.interval), spec.clock);
  cost.latency = spec.latency + cycles_time(cycles, spec.clock);
  if (kind.background) cost.interval = chip.semaphore_instruction;
  if (kind.flops != nullptr) cost.flops = kind.flops(call);
  if (engine == Engine::vector || engine == Engine::gpsimd)
    cost.shares_sbuf_port = chip.vector_gpsimd_share && touches(call, MemorySpace::sbuf);
  if (engine == Engine::vector || engine == Engine::scalar)
    cost.shares_psum_port = chip.vector_scalar_share_psum && touches(call, MemorySpace::psum);
  return cost;
}

}  // namespace trellis::sim::core
