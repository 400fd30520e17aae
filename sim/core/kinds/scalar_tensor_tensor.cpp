// Kind scalar_tensor_tensor: out = (data op operand0) op1 other. operand0 is a number or a column, other a tile.
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/kinds/tensor_scalar.h"

namespace trellis::sim::core {
namespace {

bool plain(AluOp op) {
  return op == AluOp::add || op == AluOp::multiply || op == AluOp::subtract || op == AluOp::bypass;
}

// Inputs: data, other, and the column if operand0 is one.
void check(const BoundInstruction& call) {
  const std::size_t columns = TensorScalarStep::needs_column(call, false) ? 1 : 0;
  if (call.inputs.size() != 2 + columns)
    refuse(call, "{} inputs; expected {}: data, other and, where op has no number, a column", call.inputs.size(),
           2 + columns);
  if (columns != 0) expect_column(call, "operand0", call.in(2));
  expect_arithmetic(call, Key::op);
  expect_arithmetic(call, Key::op1);
}

double cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  bool bf16 = call.out().type == DType::bf16;
  for (std::size_t i = 0; i < 2; ++i) bf16 = bf16 && call.in(i).type == DType::bf16;
  const std::int64_t n = call.out().elements();
  const bool fast = bf16 && n % 2 == 0 && plain(call.alu(Key::op)) && plain(call.alu(Key::op1));
  return row_cycles(call, row, chip, n, fast ? 1 : 0);
}

void run(const BoundInstruction& call, CoreMemory& memory) {
  InputRows data(memory, call.in(0)), other(memory, call.in(1));
  OutputRows out(call, memory, call.out());
  std::size_t column = 2;
  TensorScalarStep first(call, memory, false, column);
  const bool reversed = call.number(Key::reverse1) != 0;
  std::vector<float> middle(out.elements());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    first.apply(r, data.row(r), middle.data(), middle.size());
    const FloatRowOperand a{middle.data()}, b = other.operand(r);
    arithmetic(call.alu(Key::op1), reversed ? b : a, reversed ? a : b, out.row(), out.elements());
    out.store(r);
  }
}

const RegisteredInstruction scalar_tensor_tensor(
    {.name = "scalar_tensor_tensor",
     .summary = "out = (data op operand0) op1 other; operand0 is value or a column",
     .engines = {Engine::vector},
     .outputs = {{"out"}},
     .inputs = {{"data"}, {"other"}, {"operand0", true}},
     .keys = with_rounding({{Key::op, true}, {Key::value}, {Key::reverse}, {Key::op1, true}, {Key::reverse1}}),
     .shape = ShapeRule::elementwise,
     .check = check,
     .cycles = cycles,
     .run = run});

}  // namespace
}  // namespace trellis::sim::core
