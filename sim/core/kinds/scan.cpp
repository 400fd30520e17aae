// Kinds that scan along a row, and arithmetic that also reduces the rows of its result.
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/partition_accumulator.h"
#include "sim/core/kinds/tensor_scalar.h"

namespace trellis::sim::core {
namespace {

void check_scan(const BoundInstruction& call) {
  if (call.space(call.in(0)) == MemorySpace::psum && call.space(call.in(1)) == MemorySpace::psum)
    refuse(call, "data0 and data1 both lie in PSUM; expected one of them in SBUF");
  expect_arithmetic(call, Key::op);
  expect_arithmetic(call, Key::op1);
  if (call.inputs.size() == 2 && !call.has(Key::value)) refuse(call, "expected value or a column, the initial state");
  if (call.inputs.size() == 3) expect_column(call, "initial", call.in(2));
  for (const View& v : {call.in(0), call.in(1)}) expect_elements(call, "data", v, call.out().elements());
}

float one(AluOp op, bool reversed, float a, float b) {
  float result = 0;
  arithmetic(op, {reversed ? &b : &a}, {reversed ? &a : &b}, &result, 1);
  return result;
}

// state = op1(op(data0[i], state), data1[i]). The pairs of ops used by state space models have specialised loops.
void scan_row(AluOp op, bool reverse, AluOp op1, bool reverse1, const float* a, const float* b, float state, float* out,
              std::size_t n) {
  if (op == AluOp::multiply && op1 == AluOp::add) {
    for (std::size_t i = 0; i < n; ++i) out[i] = state = a[i] * state + b[i];
    return;
  }
  for (std::size_t i = 0; i < n; ++i) out[i] = state = one(op1, reverse1, one(op, reverse, a[i], state), b[i]);
}

void scan(const BoundInstruction& call, CoreMemory& memory) {
  InputRows a(memory, call.in(0)), b(memory, call.in(1));
  OutputRows out(call, memory, call.out());
  ScalarOperand initial(memory, call.inputs.size() == 3 ? &call.in(2) : nullptr, call.number(Key::value));
  const bool reverse = call.number(Key::reverse) != 0, reverse1 = call.number(Key::reverse1) != 0;
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    scan_row(call.alu(Key::op), reverse, call.alu(Key::op1), reverse1, a.row(r), b.row(r), initial.at(r), out.row(),
             out.elements());
    out.store(r);
  }
}

const RegisteredInstruction tensor_tensor_scan(
    {.name = "tensor_tensor_scan",
     .summary = "out[i] = (data0[i] op out[i - 1]) op1 data1[i]; before the first: value or a column",
     .engines = {Engine::vector},
     .outputs = {{"out"}},
     .inputs = {{"data0"}, {"data1"}, {"initial", true}},
     .keys = with_rounding({{Key::op, true}, {Key::op1, true}, {Key::value}, {Key::reverse}, {Key::reverse1}}),
     .shape = ShapeRule::elementwise,
     .check = check_scan,
     .run = scan});

void check_cumulative(const BoundInstruction& call) {
  expect_arithmetic(call, Key::op);
  expect_reduction(call, Key::op1);
  const std::size_t columns = TensorScalarStep::needs_column(call, false) ? 1 : 0;
  if (call.inputs.size() != 1 + columns)
    refuse(call, "{} inputs; expected data and, where op has no number, a column", call.inputs.size());
  if (columns != 0) expect_column(call, "operand0", call.in(1));
  for (const View* v : {&call.in(), &call.out()})
    if (v->type == DType::i32 || v->type == DType::u32)
      refuse(call, "{} is not among its types; expected at most 16 bits of integer", name(v->type));
}

void cumulative(const BoundInstruction& call, CoreMemory& memory) {
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  std::size_t column = 1;
  TensorScalarStep first(call, memory, false, column);
  const AluOp op = call.alu(Key::op1);
  const auto command =
      static_cast<ReduceCommand>(call.number(Key::reduce_command, static_cast<double>(ReduceCommand::reset_reduce)));
  std::vector<float> middle(out.elements());
  const auto lane = static_cast<std::size_t>(call.buffer(call.out()).partition + call.out().row);
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    float& kept = memory.state(call.instruction).lanes[lane + static_cast<std::size_t>(r)].accumulator;
    float state = neutral(op);
    if (command == ReduceCommand::reduce) state = kept;
    if (command == ReduceCommand::load_reduce) state = static_cast<float>(call.number(Key::value1));
    first.apply(r, in.row(r), middle.data(), middle.size());
    for (std::size_t i = 0; i < middle.size(); ++i) out.row()[i] = state = one(op, false, middle[i], state);
    kept = state;
    out.store(r);
  }
}

const RegisteredInstruction tensor_scalar_cumulative(
    {.name = "tensor_scalar_cumulative",
     .summary = "out[i] = (data[i] op operand0) op1 out[i - 1]; before the first: as reduce_cmd says",
     .engines = {Engine::vector},
     .outputs = {{"out"}},
     .inputs = {{"data"}, {"operand0", true}},
     .keys = with_rounding(
         {{Key::op, true}, {Key::value}, {Key::reverse}, {Key::op1, true}, {Key::reduce_command}, {Key::value1}}),
     .shape = ShapeRule::elementwise,
     .check = check_cumulative,
     .run = cumulative});

void check_reduce(const BoundInstruction& call) {
  expect_arithmetic(call, Key::op);
  const std::size_t columns = TensorScalarStep::needs_column(call, false) ? 1 : 0;
  if (call.inputs.size() != 1 + columns)
    refuse(call, "{} inputs; expected data and, where op has no number, a column", call.inputs.size());
  if (columns != 0) expect_column(call, "operand0", call.in(1));
  expect_rows(call, "data", call.in(), call.out().rows);
  expect_elements(call, "data", call.in(), call.out().elements());
  check_accumulator(call);
}

double reduce_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  const double elements = row_cycles(call, row, chip, call.out().elements());
  return result_of(call) != nullptr ? elements : elements - row.fixed;  // fixed: the time to read the accumulators
}

void reduce(const BoundInstruction& call, CoreMemory& memory) {
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  std::size_t column = 1;
  TensorScalarStep first(call, memory, false, column);
  PartitionAccumulator sums(call, memory, AluOp::add, ReduceCommand::reset_reduce);
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    first.apply(r, in.row(r), out.row(), out.elements());
    sums.row(r, out.row(), out.elements());
    out.store(r);
  }
}

const RegisteredInstruction tensor_scalar_reduce(
    {.name = "tensor_scalar_reduce",
     .summary = "out = data op operand0, and result = each row of it reduced, as reduce and reduce_cmd say",
     .engines = {Engine::vector},
     .outputs = {{"out"}, {"result", true}},
     .inputs = {{"data"}, {"operand0", true}},
     .keys = with_rounding(with_accumulator({{Key::op, true}, {Key::value}, {Key::reverse}})),
     .check = check_reduce,
     .cycles = reduce_cycles,
     .run = reduce});

}  // namespace
}  // namespace trellis::sim::core
