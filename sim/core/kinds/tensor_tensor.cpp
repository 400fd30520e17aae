// Kinds for arithmetic of two tiles.
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {
namespace {

bool plain(AluOp op) { return op == AluOp::add || op == AluOp::multiply || op == AluOp::subtract; }

// Which fast mode may apply. 0: none. 1: an operand comes from PSUM. 2: operands are in SBUF and all types are narrow,
// which is faster on some chips. 3: as 2, and operands and output are contiguous bf16 and op is plain, which is faster
// on every chip.
int speed(const BoundInstruction& call, const ChipSpec& chip) {
  const View &a = call.in(0), &b = call.in(1), &out = call.out();
  const bool sbuf = call.space(a) == MemorySpace::sbuf && call.space(b) == MemorySpace::sbuf;
  if (sbuf && is_narrow(a.type, chip) && is_narrow(b.type, chip) && is_narrow(out.type, chip)) {
    const bool bf16 = a.type == DType::bf16 && b.type == DType::bf16 && out.type == DType::bf16;
    const bool in_order = inner_contiguous(a) && inner_contiguous(b) && inner_contiguous(out);
    return bf16 && in_order && plain(call.alu()) ? 3 : 2;
  }
  return call.space(a) == MemorySpace::psum || call.space(b) == MemorySpace::psum ? 1 : 0;
}

double cycles(const BoundInstruction& call, const CostRow& row, const ChipSpec& chip) {
  const int known = speed(call, chip);
  const bool has_mode = row.faster < row.fast;  // narrow types run at the rate `faster`, plain or not
  return row_cycles(call, row, chip, call.out().elements(), known >= 2 && has_mode ? 2 : known == 2 ? 0 : known & 1);
}

void bits(const BoundInstruction& call, CoreMemory& memory) {
  BitRows a(memory, call.in(0)), b(memory, call.in(1)), out(memory, call.out());
  std::vector<std::uint64_t> row(out.elements());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    bitwise(call.alu(), a.operand(r), b.operand(r), a.bits(), row.data(), row.size());
    out.store(r, row.data());
  }
}

void run(const BoundInstruction& call, CoreMemory& memory) {
  if (is_bitwise(call.alu())) return bits(call, memory);
  InputRows a(memory, call.in(0)), b(memory, call.in(1));
  OutputRows out(call, memory, call.out());
  for (std::int64_t r = 0; r < call.out().rows; ++r) {
    arithmetic(call.alu(), a.operand(r), b.operand(r), out.row(), out.elements());
    out.store(r);
  }
}

void check(const BoundInstruction& call) {
  const AluOp op = call.alu();
  if (is_unary(op) || op == AluOp::bypass || op == AluOp::average)
    refuse(call, "op is {}, which takes one operand; expected an operation of two", name(op));
  if (!is_bitwise(op)) return;
  for (const View& v : {call.in(0), call.in(1), call.out()})
    if (kernels::is_float(v.type) || v.type != call.in(0).type)
      refuse(call, "op is {}, which is of bits: expected integers of one type, not {}", name(op), name(v.type));
}

const RegisteredInstruction tensor_tensor({.name = "tensor_tensor",
                                           .summary = "out = a op b",
                                           .engines = {Engine::vector, Engine::gpsimd},
                                           .outputs = {{"out"}},
                                           .inputs = {{"a"}, {"b"}},
                                           .keys = with_rounding({{Key::op, true}}),
                                           .shape = ShapeRule::elementwise,
                                           .check = check,
                                           .cycles = cycles,
                                           .run = run});

}  // namespace
}  // namespace trellis::sim::core
