// Kinds for reductions along the free dimensions.
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

// How many neighbouring elements become one: all, unless out has more than one element.
std::int64_t run_length(const BoundInstruction& call) { return call.in().elements() / call.out().elements(); }

void check(const BoundInstruction& call) {
  const View &in = call.in(), &out = call.out();
  const AluOp op = call.alu();
  if (!is_reduction(op)) refuse(call, "op is {}, which does not reduce", name(op));
  if (is_bitwise(op) && (kernels::is_float(in.type) || in.type != out.type))
    refuse(call, "op is {}, which is of bits: expected integers of one type, not {} and {}", name(op), name(in.type),
           name(out.type));
  expect_rows(call, "out", out, in.rows);
  std::int64_t inner = 1;
  for (int d = in.dims - 1; d >= 0 && in.elements() / inner != out.elements(); --d)
    inner *= in.dim[static_cast<std::size_t>(d)].count;
  if (in.elements() / inner != out.elements())
    refuse(call,
           "out has {} elements a row; expected what is left of data's dimensions without the last, "
           "the last two, ... of them",
           out.elements());
}

double cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  const bool bf16 = call.in().type == DType::bf16 && call.out().type == DType::bf16;
  const bool fast = bf16 && (call.alu() == AluOp::add || call.alu() == AluOp::max);
  return row_cycles(call, row, chip, call.in().elements(), fast ? 1 : 0);
}

void bits(const BoundInstruction& call, CoreMemory& memory) {
  BitRows in(memory, call.in()), out(memory, call.out());
  const auto length = static_cast<std::size_t>(run_length(call));
  std::vector<std::uint64_t> row(out.elements());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    const std::uint64_t* data = in.row(r);
    for (std::size_t o = 0; o < row.size(); ++o) {
      std::uint64_t state = data[o * length], next = 0;
      for (std::size_t i = 1; i < length; ++i) {
        bitwise(call.alu(), {&state}, {data + o * length + i}, in.bits(), &next, 1);
        state = next;
      }
      row[o] = state;
    }
    out.store(r, row.data());
  }
}

// Sums of f32 go from left to right: all 4,096 sums of a published run on Trainium 1 agree with that to the bit.
SumOrder order_of(const BoundInstruction& call, const CoreMemory& memory) {
  const bool published = call.alu() == AluOp::add && call.in().type == DType::f32;
  return published ? SumOrder::sequential : memory.sum_order();
}

void run(const BoundInstruction& call, CoreMemory& memory) {
  const AluOp op = call.alu();
  if (is_bitwise(op)) return bits(call, memory);
  const SumOrder order = order_of(call, memory);
  InputRows in(memory, call.in());
  OutputRows out(call, memory, call.out());
  const auto length = static_cast<std::size_t>(run_length(call));
  const bool negate = call.number(Key::negate) != 0;
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    const float* data = in.row(r);
    for (std::size_t o = 0; o < out.elements(); ++o) {
      const float value = reduced(op, data + o * length, length, order);
      out.row()[o] = negate ? -value : value;
    }
    out.store(r);
  }
}

const RegisteredInstruction tensor_reduce({.name = "tensor_reduce",
                                           .summary = "out = the last dimensions of data, reduced",
                                           .engines = {Engine::vector, Engine::gpsimd},
                                           .outputs = {{"out"}},
                                           .inputs = {{"data"}},
                                           .keys = with_rounding({{Key::op, true}, {Key::negate}}),
                                           .check = check,
                                           .cycles = cycles,
                                           .run = run});

}  // namespace
}  // namespace trellis::sim::core
