// Kinds that apply a function to a tile on other engines than Scalar, Scalar's activate2, and copies whose place
// depends on data.
#include <algorithm>
#include <cmath>

#include "sim/core/arithmetic/activation_functions.h"
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/partition_accumulator.h"
#include "sim/core/kinds/tensor_scalar.h"
#include "sim/core/program/operand_footprint.h"

namespace trellis::sim::core {
namespace {

template <ActivationFunction f>
void apply(const BoundInstruction& call, CoreMemory& memory) {
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    evaluate(f, in.row(r), out.row(), out.elements());
    out.store(r);
  }
}

const RegisteredInstruction reciprocal({.name = "reciprocal",
                                        .summary = "out = 1 / data",
                                        .engines = {Engine::vector, Engine::scalar},
                                        .outputs = {{"out"}},
                                        .inputs = {{"data"}},
                                        .keys = with_rounding(),
                                        .shape = ShapeRule::elementwise,
                                        .run = apply<ActivationFunction::reciprocal>});

const RegisteredInstruction rsqrt({.name = "rsqrt",
                                   .summary = "out = 1 / sqrt(data), more precisely than Scalar's",
                                   .engines = {Engine::gpsimd},
                                   .outputs = {{"out", false, in_sbuf}},
                                   .inputs = {{"data", false, in_sbuf}},
                                   .keys = with_rounding(),
                                   .shape = ShapeRule::elementwise,
                                   .run = apply<ActivationFunction::rsqrt>});

void expect_shape(const BoundInstruction& call) {
  expect_rows(call, "data", call.in(), call.out().rows);
  expect_elements(call, "data", call.in(), call.out().elements());
}

// Inputs: data, and the numbers to subtract as a column, unless value (default 0) gives one for all rows.
void check_exponential(const BoundInstruction& call) {
  expect_shape(call);
  if (call.inputs.size() == 2) expect_column(call, "most", call.in(1));
  if (call.inputs.size() == 2 && call.has(Key::value)) refuse(call, "both value and a column");
  check_accumulator(call);
}

void exponential(const BoundInstruction& call, CoreMemory& memory) {
  InputRows in(memory, call.in());
  ScalarOperand most(memory, call.inputs.size() == 2 ? &call.in(1) : nullptr, call.number(Key::value));
  OutputRows out(call, memory, call.out());
  PartitionAccumulator sum(call, memory, AluOp::add);
  std::vector<float> shifted(out.elements());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    arithmetic(AluOp::subtract, {in.row(r)}, most.operand(r), shifted.data(), shifted.size());
    evaluate(ActivationFunction::exp, shifted.data(), out.row(), out.elements());
    sum.row(r, out.row(), out.elements());
    out.store(r);
  }
}

const RegisteredInstruction exponential_kind(
    {.name = "exponential",
     .summary = "out = exp(data - value), or less a column; result = the rows' sums, as reduce_cmd says",
     .engines = {Engine::vector},
     .outputs = {{"out"}, {"result", true}},
     .inputs = {{"data"}, {"most", true}},
     .keys = with_rounding(with_accumulator({{Key::value}})),
     .generation = 4,
     .check = check_exponential,
     .run = exponential});

void check_activate2(const BoundInstruction& call) {
  expect_shape(call);
  check_scalar_steps(call, 1);
  using enum AluOp;
  const AluOp first = call.has(Key::op) ? call.alu(Key::op) : bypass;
  const AluOp second = call.has(Key::op1) ? call.alu(Key::op1) : bypass;
  const bool legal = second == bypass ? first == multiply || first == add || first == subtract || first == bypass
                                      : first == multiply && (second == add || second == subtract);
  if (!legal)
    refuse(call,
           "op is {} and op1 {}; expected multiply with add, subtract or bypass, or add, subtract "
           "or bypass alone",
           name(first), name(second));
  const AluOp reduction = reduction_of(call, Key::reduce, add);
  if (reduction != add && reduction != max && reduction != min && reduction != abs_max && reduction != abs_min)
    refuse(call, "reduce is {}; expected add, max, min, abs_max or abs_min", name(reduction));
  if (static_cast<ReduceCommand>(call.number(Key::reduce_command)) == ReduceCommand::load_reduce)
    refuse(call, "reduce_cmd is load_reduce; expected another, value1 being the second operand");
  check_accumulator(call);
}

double activate2_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  const bool fast = is_16bit(call.in().type) && is_16bit(call.out().type);
  const double elements = row_cycles(call, row, chip, call.in().elements(), fast ? 1 : 0);
  return result_of(call) != nullptr ? elements : elements - row.fixed;  // fixed: the time to read the accumulators
}

void activate2(const BoundInstruction& call, CoreMemory& memory) {
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  std::size_t column = 1;
  TensorScalarStep first(call, memory, false, column), second(call, memory, true, column);
  if (!call.has(Key::op)) first.op = AluOp::bypass;
  if (!call.has(Key::op1)) second.op = AluOp::bypass;
  PartitionAccumulator sum(call, memory, AluOp::add);
  const auto func = static_cast<ActivationFunction>(call.number(Key::func));
  std::vector<float> a(out.elements()), b(a.size());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    first.apply(r, in.row(r), a.data(), a.size());
    second.apply(r, a.data(), b.data(), b.size());
    evaluate(func, b.data(), out.row(), out.elements(), static_cast<float>(call.number(Key::bias)));
    sum.row(r, out.row(), out.elements());
    out.store(r);
  }
}

const RegisteredInstruction activate2_kind(
    {.name = "activate2",
     .summary = "out = func((data op operand0) op1 operand1), and result as reduce_cmd says; bias: prelu's slope",
     .engines = {Engine::scalar},
     .outputs = {{"out"}, {"result", true}},
     .inputs = {{"data"}, {"operand0", true}, {"operand1", true}},
     .keys = with_rounding({{Key::func, true},
                            {Key::op},
                            {Key::value},
                            {Key::reverse},
                            {Key::op1},
                            {Key::value1},
                            {Key::reverse1},
                            {Key::bias},
                            {Key::reduce},
                            {Key::reduce_command},
                            {Key::negate}}),
     .generation = 4,
     .check = check_activate2,
     .cycles = activate2_cycles,
     .run = activate2,
     .not_yet = "load_reduce"});

// The second input holds an offset: the source (or the output) begins offset * `scale` elements later than its view
// says.
void check_dynamic(const BoundInstruction& call) {
  expect_elements(call, "source", call.in(0), call.out().elements());
  expect_rows(call, "source", call.in(0), call.out().rows);
  expect_rows(call, "offset", call.in(1), 1);
  expect_elements(call, "offset", call.in(1), 1);
  if (kernels::is_float(call.in(1).type)) refuse(call, "offset is {}; expected an integer type", name(call.in(1).type));
}

// A copy whose place depends on data costs at least row.fixed cycles.
double dynamic_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  return std::max(row_cycles(call, row, chip, call.out().elements()) - row.fixed, row.fixed);
}

View moved(const BoundInstruction& call, CoreMemory& memory, View v) {
  double offset = 0;
  memory.read(call.in(1), 0, &offset);
  const double by = std::trunc(offset * call.number(Key::scale, 1)) * static_cast<double>(kernels::size_of(v.type));
  const CoreBuffer& b = call.buffer(v);
  const ByteRange all = all_bytes(v, b.space);
  if (!(all.low + by >= 0 && all.high + by <= static_cast<double>(b.bytes)))  // refuses NaN, too
    refuse(call, "offset {} leads out of {}", offset, b.name);
  v.offset += static_cast<std::int64_t>(by);
  return v;
}

template <bool source>
void copy_moved(const BoundInstruction& call, CoreMemory& memory) {
  const View in = source ? moved(call, memory, call.in(0)) : call.in(0);
  const View out = source ? call.out() : moved(call, memory, call.out());
  InputRows from(memory, in);
  OutputRows to(call, memory, out);
  for (std::int64_t r = 0; r < out.rows; ++r) to.store(r, from.row(r));
}

InstructionKind dynamic(std::string name, std::string summary, IndirectOperand moved,
                        void (*run)(const BoundInstruction&, CoreMemory&)) {
  return {.name = std::move(name),
          .summary = std::move(summary),
          .engines = {Engine::vector, Engine::scalar, Engine::gpsimd},
          .outputs = {{"out"}},
          .inputs = {{"source"}, {"offset", false, in_sbuf}},
          .keys = with_rounding({{Key::scale}}),
          .indirect = moved,
          .check = check_dynamic,
          .cycles = dynamic_cycles,
          .run = run};
}

const RegisteredInstruction dynamic_copies[] = {
    RegisteredInstruction(dynamic("tensor_copy_dynamic_src", "out = source, moved by offset times scale elements",
                                  IndirectOperand::source, copy_moved<true>)),
    RegisteredInstruction(dynamic("tensor_copy_dynamic_dst", "out, moved by offset times scale elements, = source",
                                  IndirectOperand::target, copy_moved<false>)),
};

}  // namespace
}  // namespace trellis::sim::core
