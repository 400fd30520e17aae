#include "sim/core/arithmetic/checks_and_costs.h"

#include "text/refuse.h"

namespace trellis::sim::core {

double row_cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip, std::int64_t elements,
                  int speed) {
  const Instruction& i = call.instruction;
  if (!row.there)
    text::refuse("{} has no {} on its {} engine (no cost.{}.{} in its file)", chip.name, i.kind->name, name(i.engine),
                 i.kind->name, name(i.engine));
  const double each = speed == 0 ? row.element : speed == 1 ? row.fast : row.faster;
  return row.fixed + each * static_cast<double>(elements);
}

int copy_speed(const View& out, const View& in, const BoundInstruction& call, const ChipSpec& chip) {
  if (!is_narrow(out.type, chip) || !is_narrow(in.type, chip)) return 0;
  const bool in_order = inner_contiguous(out) && inner_contiguous(in);
  const int outside = (call.space(out) != MemorySpace::sbuf) + (call.space(in) != MemorySpace::sbuf);
  if (outside == 0) return in_order ? 2 : 1;
  return outside == 1 && in_order ? 1 : 0;
}

void expect_arithmetic(const BoundInstruction& call, Key key) {
  if (call.has(key) && is_bitwise(call.alu(key)))
    refuse(call, "{} is {}, which is of bits; expected an arithmetic operation", name(key), name(call.alu(key)));
}

void expect_reduction(const BoundInstruction& call, Key key) {
  if (call.has(key) && (!is_reduction(call.alu(key)) || is_bitwise(call.alu(key))))
    refuse(call,
           "{} is {}, which does not reduce; expected add, subtract, multiply, max, min, abs_max, "
           "abs_min or a logical operation",
           name(key), name(call.alu(key)));
}

void expect_elements(const BoundInstruction& call, std::string_view operand, const View& v, std::int64_t elements) {
  if (v.elements() != elements) refuse(call, "{} has {} elements a row; expected {}", operand, v.elements(), elements);
}

void expect_rows(const BoundInstruction& call, std::string_view operand, const View& v, std::int64_t rows) {
  if (v.rows != rows) refuse(call, "{} has {} rows; expected {}", operand, v.rows, rows);
}

void expect_column(const BoundInstruction& call, std::string_view operand, const View& v) {
  expect_elements(call, operand, v, 1);
  expect_rows(call, operand, v, call.out().rows);
}

AluOp reduction_of(const BoundInstruction& call, Key key, AluOp otherwise) {
  return static_cast<AluOp>(call.number(key, static_cast<double>(otherwise)));
}

}  // namespace trellis::sim::core
