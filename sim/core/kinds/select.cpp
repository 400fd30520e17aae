// Kinds that select between two values by a predicate: given, by a range of indices, or by an affine pattern.
#include <limits>

#include "sim/core/arithmetic/affine_pattern.h"
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/partition_accumulator.h"

namespace trellis::sim::core {
namespace {

void expect_same_shape(const BoundInstruction& call, std::string_view operand, const View& v) {
  expect_rows(call, operand, v, call.out().rows);
  expect_elements(call, operand, v, call.out().elements());
}

void expect_one_psum(const BoundInstruction& call, const View& a, const View& b) {
  if (call.space(a) == MemorySpace::psum && call.space(b) == MemorySpace::psum)
    refuse(call, "values and predicate both lie in PSUM; expected one of them in SBUF");
}

// A row of the predicate as 1 and 0.
class Predicate {
 public:
  Predicate(const BoundInstruction& call, CoreMemory& memory, const View& v)
      : source_(memory, v), row_(source_.elements()), reversed_(call.number(Key::reverse) != 0) {}
  const float* row(std::int64_t r) {
    const float* from = source_.row(r);
    for (std::size_t i = 0; i < row_.size(); ++i) row_[i] = (from[i] != 0) != reversed_ ? 1.0F : 0.0F;
    return row_.data();
  }

 private:
  InputRows source_;
  std::vector<float> row_;
  bool reversed_;
};

void pick(const float* __restrict yes, FloatRowOperand a, FloatRowOperand b, float* __restrict out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = yes[i] != 0 ? a.at[a.spread ? 0 : i] : b.at[b.spread ? 0 : i];
}

double select_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  bool psum = false;
  for (const View& v : call.inputs) psum = psum || call.space(v) == MemorySpace::psum;
  return row_cycles(call, row, chip, call.out().elements(), psum ? 1 : 0);
}

// Inputs: predicate, and the values unless they are a number.
void check_predicated(const BoundInstruction& call) {
  const DType type = call.in().type;
  if (type != DType::u8 && type != DType::u16 && type != DType::u32)
    refuse(call, "predicate is {}; expected u8, u16 or u32", name(type));
  expect_same_shape(call, "predicate", call.in());
  if (call.inputs.size() == 1) {
    if (!call.has(Key::value)) refuse(call, "expected value or a tile, what is copied");
    return;
  }
  expect_same_shape(call, "source", call.in(1));
  expect_one_psum(call, call.in(0), call.in(1));
  if (call.in(1).type != call.out().type)
    refuse(call, "source is {} and out {}; expected one type", name(call.in(1).type), name(call.out().type));
}

void predicated(const BoundInstruction& call, CoreMemory& memory) {
  Predicate yes(call, memory, call.in());
  const View& out = call.out();
  const auto n = static_cast<std::size_t>(out.elements());
  std::vector<double> row(n), values(n, call.number(Key::value));
  for (std::int64_t r = 0; r < out.rows; ++r) {
    const float* chosen = yes.row(r);
    memory.read(out, r, row.data());
    if (call.inputs.size() == 2) memory.read(call.in(1), r, values.data());
    for (std::size_t i = 0; i < n; ++i)
      if (chosen[i] != 0) row[i] = values[i];
    memory.write(out, r, row.data());
  }
}

const RegisteredInstruction tensor_copy_predicated(
    {.name = "tensor_copy_predicated",
     .summary = "out = source (or value) where predicate is not 0 (reverse: is 0)",
     .engines = {Engine::vector},
     .outputs = {{"out"}},
     .inputs = {{"predicate"}, {"source", true}},
     .keys = {{Key::value}, {Key::reverse}},
     .check = check_predicated,
     .cycles = select_cycles,
     .run = predicated});

// Inputs: predicate, on_true, and on_false unless it is a number.
void check_select(const BoundInstruction& call) {
  if (kernels::is_float(call.in(0).type))
    refuse(call, "predicate is {}; expected an integer type", name(call.in(0).type));
  for (std::size_t i = 0; i < 2; ++i) expect_same_shape(call, i == 0 ? "predicate" : "on_true", call.in(i));
  expect_one_psum(call, call.in(0), call.in(1));
  if (call.inputs.size() == 2 && !call.has(Key::value)) refuse(call, "expected value or on_false");
  if (call.inputs.size() == 3 && call.in(2).elements() == 1)
    expect_column(call, "on_false", call.in(2));
  else if (call.inputs.size() == 3)
    expect_same_shape(call, "on_false", call.in(2));
  check_accumulator(call);
}

void select(const BoundInstruction& call, CoreMemory& memory) {
  Predicate yes(call, memory, call.in(0));
  InputRows on_true(memory, call.in(1));
  OutputRows out(call, memory, call.out());
  const bool tile = call.inputs.size() == 3 && call.in(2).elements() != 1;
  InputRows on_false(memory, call.in(tile ? 2 : 1));
  ScalarOperand number(memory, call.inputs.size() == 3 && !tile ? &call.in(2) : nullptr, call.number(Key::value));
  PartitionAccumulator most(call, memory, AluOp::max);
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    pick(yes.row(r), on_true.operand(r), tile ? on_false.operand(r) : number.operand(r), out.row(), out.elements());
    most.row(r, out.row(), out.elements());
    out.store(r);
  }
}

const std::vector<OperandRule> select_inputs = {{"predicate"}, {"on_true"}, {"on_false", true}};

const RegisteredInstruction select_kind(
    {.name = "select",
     .summary = "out = on_true where predicate is not 0 (reverse: is 0), else on_false or value",
     .engines = {Engine::vector},
     .outputs = {{"out"}},
     .inputs = select_inputs,
     .keys = with_rounding({{Key::value}, {Key::reverse}}),
     .check = check_select,
     .cycles = select_cycles,
     .run = select});

const RegisteredInstruction select_reduce(
    {.name = "select_reduce",
     .summary = "as select, and result = each row of it reduced (max where absent)",
     .engines = {Engine::vector},
     .outputs = {{"out"}, {"result", true}},
     .inputs = select_inputs,
     .keys = with_rounding(with_accumulator({{Key::value}, {Key::reverse}})),
     .check = check_select,
     .cycles = select_cycles,
     .run = select});

void expect_compare(const BoundInstruction& call, Key key) {
  if (!is_compare(call.alu(key)) || call.alu(key) == AluOp::not_equal)
    refuse(call, "{} is {}; expected is_equal, is_gt, is_ge, is_lt or is_le", name(key), name(call.alu(key)));
}

// Inputs: data, bound0, bound1.
void check_range(const BoundInstruction& call) {
  expect_compare(call, Key::compare);
  expect_compare(call, Key::compare1);
  expect_same_shape(call, "data", call.in(0));
  if (!kernels::is_float(call.in(0).type)) refuse(call, "data is {}; expected a floating type", name(call.in(0).type));
  for (const std::size_t i : {1U, 2U}) {
    expect_column(call, "bound", call.in(i));
    if (call.in(i).type != DType::f32) refuse(call, "bound is {}; expected f32", name(call.in(i).type));
  }
  if (call.number(Key::start) + static_cast<double>(call.out().elements()) > 0x1p24)
    refuse(call, "start and elements reach beyond 2^24, where f32 has no longer every integer");
  check_accumulator(call);
}

void range(const BoundInstruction& call, CoreMemory& memory) {
  InputRows data(memory, call.in(0));
  ScalarOperand low(memory, &call.in(1), 0), high(memory, &call.in(2), 0);
  OutputRows out(call, memory, call.out());
  PartitionAccumulator most(call, memory, AluOp::max, ReduceCommand::reset_reduce);
  const std::size_t n = out.elements();
  std::vector<float> place(n), first(n), second(n), both(n);
  for (std::size_t i = 0; i < n; ++i) place[i] = static_cast<float>(call.number(Key::start)) + static_cast<float>(i);
  const auto otherwise =
      static_cast<float>(call.number(Key::value, -static_cast<double>(std::numeric_limits<float>::max())));
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    arithmetic(call.alu(Key::compare), {place.data()}, low.operand(r), first.data(), n);
    arithmetic(call.alu(Key::compare1), {place.data()}, high.operand(r), second.data(), n);
    arithmetic(AluOp::multiply, {first.data()}, {second.data()}, both.data(), n);
    pick(both.data(), data.operand(r), {&otherwise, true}, out.row(), n);
    most.row(r, out.row(), n);
    out.store(r);
  }
}

const RegisteredInstruction range_select(
    {.name = "range_select",
     .summary = "out = data where (start + place) cmp bound0 and cmp1 bound1, else value (the least f32)",
     .engines = {Engine::vector},
     .outputs = {{"out"}, {"result", true}},
     .inputs = {{"data"}, {"bound0"}, {"bound1"}},
     .keys = with_rounding(with_accumulator({{Key::compare, true}, {Key::compare1, true}, {Key::start}, {Key::value}})),
     .generation = 3,
     .check = check_range,
     .run = range});

void check_affine(const BoundInstruction& call) {
  expect_same_shape(call, "data", call.in());
  if (call.has(Key::compare) && !is_compare(call.alu(Key::compare)))
    refuse(call, "cmp is {}; expected a comparison", name(call.alu(Key::compare)));
}

void affine(const BoundInstruction& call, CoreMemory& memory) {
  const View& out_view = call.out();
  const AffinePattern pattern(call, out_view);
  InputRows data(memory, call.in());
  OutputRows out(call, memory, out_view);
  const std::size_t n = out.elements();
  std::vector<std::int64_t> values(n);
  std::vector<float> numbers(n), yes(n);
  const float zero = 0;
  const auto otherwise = static_cast<float>(call.number(Key::value));
  const auto compare = static_cast<AluOp>(call.number(Key::compare, static_cast<double>(AluOp::is_equal)));
  for (std::int64_t r = 0; r < out_view.rows; ++r) {
    pattern.row(r, values.data());
    for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<float>(values[i]);
    arithmetic(compare, {numbers.data()}, {&zero, true}, yes.data(), n);
    pick(yes.data(), data.operand(r), {&otherwise, true}, out.row(), n);
    out.store(r);
  }
}

const RegisteredInstruction affine_select({.name = "affine_select",
                                           .summary = "out = data where the pattern (as iota's) cmp 0, else value",
                                           .engines = {Engine::gpsimd},
                                           .outputs = {{"out", false, in_sbuf}},
                                           .inputs = {{"data", false, in_sbuf}},
                                           .keys = {{Key::value, true},
                                                    {Key::compare},
                                                    {Key::start},
                                                    {Key::step},
                                                    {Key::step1},
                                                    {Key::step2},
                                                    {Key::step3},
                                                    {Key::rows}},
                                           .check = check_affine,
                                           .run = affine});

}  // namespace
}  // namespace trellis::sim::core
