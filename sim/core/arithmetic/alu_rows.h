// The AluOps, a row at a time: in f32 with each operation rounded, or on raw bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/core/program/attributes.h"
#include "sim/core/run/core_memory.h"

namespace trellis::sim::core {

// Works on bit patterns: operands are integers of one type.
constexpr bool is_bitwise(AluOp op) { return op >= AluOp::bitwise_and && op <= AluOp::arith_shift_right; }
// Has one operand.
constexpr bool is_unary(AluOp op) {
  return op == AluOp::rsqrt || op == AluOp::logical_not || op == AluOp::bitwise_not || op >= AluOp::abs;
}
constexpr bool is_compare(AluOp op) { return op >= AluOp::is_equal && op <= AluOp::is_le; }
// May reduce a row.
constexpr bool is_reduction(AluOp op) {
  return op <= AluOp::multiply || op == AluOp::max || op == AluOp::min || op == AluOp::abs_max ||
         op == AluOp::abs_min || (op >= AluOp::logical_and && op <= AluOp::logical_xor) ||
         (op >= AluOp::bitwise_and && op <= AluOp::bitwise_xor);
}

struct FloatRowOperand {
  const float* at;
  bool spread = false;  // one element for the whole row
};

// out[i] = a[i] op b[i]. Comparisons and logical operations give 1 or 0. b is not read if the op is unary. out may not
// overlap an operand.
void arithmetic(AluOp, FloatRowOperand a, FloatRowOperand b, float* out, std::size_t n);

// Reduces a row to one number. subtract goes from left to right whatever the SumOrder.
float reduced(AluOp, const float* a, std::size_t n, SumOrder);
// The neutral element, for ops that have one: 0 of add, 1 of multiply, -infinity of max.
float neutral(AluOp);

struct BitRowOperand {
  const std::uint64_t* at;
  bool spread = false;
};
// Like arithmetic(), on the lowest `bits` bits.
void bitwise(AluOp, BitRowOperand a, BitRowOperand b, int bits, std::uint64_t* out, std::size_t n);

}  // namespace trellis::sim::core
