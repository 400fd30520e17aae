// Kinds for arithmetic of a tile with numbers or columns: (data op0 operand0) op1 operand1.
#include "sim/core/kinds/tensor_scalar.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "sim/core/arithmetic/checks_and_costs.h"

namespace trellis::sim::core {

TensorScalarStep::TensorScalarStep(const BoundInstruction& call, CoreMemory& memory, bool second,
                                   std::size_t& next_column)
    : op(call.alu(second ? Key::op1 : Key::op)),
      reversed_(call.number(second ? Key::reverse1 : Key::reverse) != 0),
      scalar_(memory, needs_column(call, second) ? &call.in(next_column++) : nullptr,
              call.number(second ? Key::value1 : Key::value)) {}

bool TensorScalarStep::needs_column(const BoundInstruction& call, bool second) {
  const Key op = second ? Key::op1 : Key::op;
  return call.has(op) && !is_unary(call.alu(op)) && call.alu(op) != AluOp::bypass &&
         !call.has(second ? Key::value1 : Key::value);
}

void TensorScalarStep::apply(std::int64_t row, const float* data, float* out, std::size_t n) {
  const FloatRowOperand number = scalar_.operand(row), own{data};
  if (reversed_)
    arithmetic(op, number, own, out, n);
  else
    arithmetic(op, own, number, out, n);
}

void TensorScalarStep::apply(std::int64_t row, const std::uint64_t* data, int bits, std::uint64_t* out, std::size_t n) {
  const auto number = static_cast<std::uint64_t>(scalar_.whole(row));
  if (reversed_)
    bitwise(op, {&number, true}, {data}, bits, out, n);
  else
    bitwise(op, {data}, {&number, true}, bits, out, n);
}

void check_scalar_steps(const BoundInstruction& call, std::size_t other_inputs) {
  std::size_t columns = 0;
  for (const bool second : {false, true}) columns += TensorScalarStep::needs_column(call, second);
  if (call.inputs.size() != other_inputs + columns)
    refuse(call, "{} columns as operands; expected {}: one for each operation that has no number",
           call.inputs.size() - other_inputs, columns);
  for (std::size_t c = other_inputs; c < call.inputs.size(); ++c)
    expect_column(call, fmt::format("operand{}", c - other_inputs), call.in(c));
  if (call.has(Key::op1) && call.alu(Key::op1) != AluOp::bypass &&
      is_bitwise(call.alu(Key::op)) != is_bitwise(call.alu(Key::op1)))
    refuse(call, "op is {} and op1 {}; expected both of bits or both arithmetic", name(call.alu(Key::op)),
           name(call.alu(Key::op1)));
}

namespace {

void check(const BoundInstruction& call) {
  check_scalar_steps(call, 1);
  if (!is_bitwise(call.alu())) return;
  const View &in = call.in(), &out = call.out();
  for (const Key key : {Key::value, Key::value1})
    if (const double v = call.number(key); v != std::floor(v) || std::fabs(v) > 0x1p32)
      refuse(call, "{} is {}; expected a whole number of 32 bits beside operations on bits", name(key), v);
  for (std::size_t c = 1; c < call.inputs.size(); ++c)
    if (kernels::is_float(call.in(c).type))
      refuse(call, "operand{} is {}; expected integers beside operations on bits", c - 1, name(call.in(c).type));
  if (call.instruction.engine != Engine::vector)
    refuse(call, "op is {}, which is of bits: expected the vector engine", name(call.alu()));
  if (kernels::is_float(in.type) || in.type != out.type)
    refuse(call, "op is {}, which is of bits: expected integers of one type, not {} and {}", name(call.alu()),
           name(in.type), name(out.type));
}

double cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  return row_cycles(call, row, chip, call.out().elements(), copy_speed(call.out(), call.in(), call, chip));
}

void bits(const BoundInstruction& call, CoreMemory& memory) {
  BitRows in(memory, call.in()), out(memory, call.out());
  std::vector<std::uint64_t> middle(out.elements()), last(out.elements());
  std::size_t column = 1;
  TensorScalarStep first(call, memory, false, column);
  const bool two = call.has(Key::op1);
  std::optional<TensorScalarStep> second;
  if (two) second.emplace(call, memory, true, column);
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    first.apply(r, in.row(r), in.bits(), middle.data(), middle.size());
    if (two) second->apply(r, middle.data(), in.bits(), last.data(), last.size());
    out.store(r, two ? last.data() : middle.data());
  }
}

void run(const BoundInstruction& call, CoreMemory& memory) {
  if (is_bitwise(call.alu())) return bits(call, memory);
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  std::size_t column = 1;
  TensorScalarStep first(call, memory, false, column);
  if (!call.has(Key::op1)) {
    for (std::int64_t r = 0; r < call.out().rows; ++r) {
      first.apply(r, in.row(r), out.row(), out.elements());
      out.store(r);
    }
    return;
  }
  TensorScalarStep second(call, memory, true, column);
  std::vector<float> middle(out.elements());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    first.apply(r, in.row(r), middle.data(), middle.size());
    second.apply(r, middle.data(), out.row(), out.elements());
    out.store(r);
  }
}

const RegisteredInstruction tensor_scalar(
    {.name = "tensor_scalar",
     .summary = "out = (data op operand0) op1 operand1; operands are value, value1, or columns",
     .engines = {Engine::vector, Engine::scalar, Engine::gpsimd},
     .outputs = {{"out"}},
     .inputs = {{"data"}, {"operand0", true}, {"operand1", true}},
     .keys = with_rounding({{Key::op, true}, {Key::value}, {Key::reverse}, {Key::op1}, {Key::value1}, {Key::reverse1}}),
     .shape = ShapeRule::elementwise,
     .check = check,
     .cycles = cycles,
     .run = run});

}  // namespace
}  // namespace trellis::sim::core
