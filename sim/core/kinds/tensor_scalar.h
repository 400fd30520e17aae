// One arithmetic step of a tile with a number or a column, shared by several kinds.
#pragma once

#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {

// The operation of Key::op, or of Key::op1 for the second step. Its operand is the attribute value (value1), or else
// the next column among the inputs.
class TensorScalarStep {
 public:
  TensorScalarStep(const BoundInstruction&, CoreMemory&, bool second, std::size_t& next_column);
  static bool needs_column(const BoundInstruction&, bool second);
  void apply(std::int64_t row, const float* data, float* out, std::size_t n);
  void apply(std::int64_t row, const std::uint64_t* data, int bits, std::uint64_t* out, std::size_t n);

  AluOp op;

 private:
  bool reversed_;
  ScalarOperand scalar_;
};

// Throws unless each operation has its operand. other_inputs: number of inputs before the columns.
void check_scalar_steps(const BoundInstruction&, std::size_t other_inputs);

}  // namespace trellis::sim::core
