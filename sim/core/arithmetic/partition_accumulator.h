// The per-partition accumulators of Vector and Scalar: reductions into them, as the attribute reduce_cmd says.
#pragma once

#include "sim/core/arithmetic/operand_rows.h"

namespace trellis::sim::core {

// The second output, which accumulators are written to; null: there is none.
const View* result_of(const BoundInstruction&);

class PartitionAccumulator {
 public:
  // op, otherwise: the operation and the command if the attributes are absent.
  PartitionAccumulator(const BoundInstruction&, CoreMemory&, AluOp op, ReduceCommand otherwise);
  // If the attribute reduce_cmd is absent, rows are reduced only if the instruction has a second output.
  PartitionAccumulator(const BoundInstruction& call, CoreMemory& memory, AluOp op)
      : PartitionAccumulator(call, memory, op,
                             result_of(call) != nullptr ? ReduceCommand::reset_reduce : ReduceCommand::idle) {}
  // Applies the command to the accumulator of the row's partition (most commands reduce the values into it), then
  // writes the accumulator to the second output if there is one.
  void row(std::int64_t row, const float* values, std::size_t n);

 private:
  float start(float kept) const;
  float joined(float kept, const float* values, std::size_t n) const;  // the accumulator's new value

  const BoundInstruction& call_;
  CoreMemory& memory_;
  const View* result_;
  ReduceCommand command_;
  AluOp op_;
  bool negate_;
  float load_;
  std::size_t lane_;  // the partition of row 0
};

std::vector<KeyRule> with_accumulator(std::vector<KeyRule> own);
void check_accumulator(const BoundInstruction&);

}  // namespace trellis::sim::core
