// Rules and costs that several kinds of instruction share.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "sim/core/arithmetic/alu_rows.h"
#include "sim/core/program/instruction_kind.h"

namespace trellis::sim::core {

inline constexpr bool is_16bit(DType d) { return d == DType::bf16 || d == DType::f16; }
inline constexpr bool is_f8(DType d) { return d >= DType::f8e3m4 && d <= DType::f8e5m2; }

// Whether elements along the innermost dimension are contiguous.
inline bool inner_contiguous(const View& v) {
  const Dim& inner = v.dim[static_cast<std::size_t>(v.dims - 1)];
  return inner.count == 1 || inner.stride == 1;
}

// The cycles for a row of so many elements: the CostRow's `fixed`, and for each element its `element` (speed 0), `fast`
// (1) or `faster` (2). Throws if the chip has no costs for the kind on this engine.
double row_cycles(const BoundInstruction&, const CostRow&, const ChipSpec&, std::int64_t elements, int speed = 0);

// Types that the fast modes accept: 16 bits, and 8-bit floats from NeuronCore-v4 on.
inline bool is_narrow(DType d, const ChipSpec& chip) { return is_16bit(d) || (chip.generation >= 4 && is_f8(d)); }

// Vector's speed for copies and scaling: 2 if both sides are narrow, contiguous and in SBUF; 1 if both are narrow and
// either both are contiguous but only one is in SBUF, or both are in SBUF but not both contiguous; else 0.
int copy_speed(const View& out, const View& in, const BoundInstruction&, const ChipSpec&);

// Throws with a message such as "dma_copy: what is wrong".
template <class... T>
[[noreturn]] void refuse(const BoundInstruction& call, fmt::format_string<T...> fault, T&&... values) {
  throw std::invalid_argument(call.instruction.kind->name + ": " + fmt::format(fault, std::forward<T>(values)...));
}
// Throws unless the attribute, if present, is an arithmetic operation (or one that reduces a row).
void expect_arithmetic(const BoundInstruction&, Key);
void expect_reduction(const BoundInstruction&, Key);
void expect_elements(const BoundInstruction&, std::string_view operand, const View&, std::int64_t elements);
void expect_rows(const BoundInstruction&, std::string_view operand, const View&, std::int64_t rows);
// Throws unless the operand is a column: one element for each row of the first output.
void expect_column(const BoundInstruction&, std::string_view operand, const View&);

// The reduction that the attribute `key` names, or `otherwise` if the instruction has no such attribute.
AluOp reduction_of(const BoundInstruction&, Key key, AluOp otherwise);

}  // namespace trellis::sim::core
