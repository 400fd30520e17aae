// Kinds for copies and constants.
#include <vector>

#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

double copy_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  return row_cycles(call, row, chip, call.out().elements(), copy_speed(call.out(), call.in(), call, chip));
}

void copy(const BoundInstruction& call, CoreMemory& memory) { copy_rows(call, memory, call.in(), call.out()); }

void check_copy(const BoundInstruction& call) { expect_elements(call, "source", call.in(), call.out().elements()); }

const RegisteredInstruction tensor_copy({.name = "tensor_copy",
                                         .summary = "out = source, cast through f32 where the types differ",
                                         .engines = {Engine::vector, Engine::scalar, Engine::gpsimd},
                                         .outputs = {{"out"}},
                                         .inputs = {{"source"}},
                                         .keys = with_rounding(),
                                         .shape = ShapeRule::elementwise,
                                         .check = check_copy,
                                         .cycles = copy_cycles,
                                         .run = copy});

double memset_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  const bool fast = call.number(Key::value) == 0 && kernels::size_of(call.out().type) == 2;
  return row_cycles(call, row, chip, call.out().elements(), fast ? 1 : 0);
}

void set(const BoundInstruction& call, CoreMemory& memory) {
  const View& out = call.out();
  const std::vector<double> row(static_cast<std::size_t>(out.elements()), call.number(Key::value));
  for (std::int64_t r = 0; r < out.rows; ++r) memory.write(out, r, row.data());
}

const RegisteredInstruction memset_kind({.name = "memset",
                                         .summary = "out = value",
                                         .engines = {Engine::vector, Engine::gpsimd},
                                         .outputs = {{"out"}},
                                         .keys = {{Key::value, true}},
                                         .cycles = memset_cycles,
                                         .run = set});

}  // namespace
}  // namespace trellis::sim::core
