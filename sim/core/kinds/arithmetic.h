// What AluOps mean, a row at a time: in f32, one operation after the other, or on bits as they are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/core/attributes.h"

namespace trellis::sim::core {

// Of bit patterns: operands are integers of one type, taken as they are.
constexpr bool is_bitwise(AluOp op) { return op >= AluOp::bitwise_and && op <= AluOp::arith_shift_right; }
// Needs one operand alone.
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

struct Term {
  const float* at;
  bool spread = false;  // one element, for all of the row
};

// out[i] = a[i] op b[i]. Comparisons and logical operations give 1 or 0. b is not read where the op is unary. out may
// not overlap an operand.
void arithmetic(AluOp, Term a, Term b, float* out, std::size_t n);

// A row as one number, in the order of kernels/rows.h: element i joins state i % row_sums, which begins as neutral(),
// and then the second half of the states the first until one is left. Of subtract, from left to right.
float reduced(AluOp, const float* a, std::size_t n);
// Every state of that on the way: out[i] = out[i - 1] op a[i].
void scanned(AluOp, float start, const float* a, float* out, std::size_t n);
// What leaves every number as it is, where there is such a start: 0 of add, 1 of multiply, -infinity of max.
float neutral(AluOp);

struct BitTerm {
  const std::uint64_t* at;
  bool spread = false;
};
// The same on the lowest `bits` bits.
void bitwise(AluOp, BitTerm a, BitTerm b, int bits, std::uint64_t* out, std::size_t n);

}  // namespace trellis::sim::core
