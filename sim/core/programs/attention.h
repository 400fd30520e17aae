// Shared parts of attention and its gradient: sizes, layouts, the mask, and the reference in f64.
#pragma once

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/reference_comparison.h"
#include "sim/core/programs/shipped_programs.h"

namespace trellis::sim::core::attention {

inline constexpr std::int64_t head_size = 128, lanes = 128;
double scale();  // of exponents: 1 / sqrt(head_size)

struct AttentionSizes {
  std::int64_t length, heads;
  DType type;
  bool causal;
};

AttentionSizes sizes_of(const Arguments&);

// Blocks of 128 rows of a table [.. x head_size] side by side: row p has row first + p of each block.
TensorOperand interleaved(const TensorOperand& table, std::int64_t first, std::int64_t blocks);
// 128 x 128: 0 on and below the diagonal; above it a value whose exponential is 0.
TensorOperand mask(ProgramBuilder&);

// q and k are [heads head_size x length], v is [heads length x head_size].
class AttentionInputs {
 public:
  AttentionInputs(const AttentionSizes&, CoreMemory&);
  double query(std::int64_t head, std::int64_t at, std::int64_t d) const { return q_[column(head, at, d)]; }
  double key(std::int64_t head, std::int64_t at, std::int64_t d) const { return k_[column(head, at, d)]; }
  double value(std::int64_t head, std::int64_t at, std::int64_t d) const { return v_[row(head, at, d)]; }
  std::size_t row(std::int64_t head, std::int64_t at, std::int64_t d) const {
    return static_cast<std::size_t>((head * sizes.length + at) * head_size + d);
  }
  std::size_t column(std::int64_t head, std::int64_t at, std::int64_t d) const {
    return static_cast<std::size_t>((head * head_size + d) * sizes.length + at);
  }

  const AttentionSizes sizes;

 private:
  std::vector<double> q_, k_, v_;
};

// The softmax row of a query over the keys that it sees.
struct ReferenceSoftmaxRow {
  std::vector<double> weights;
  double lse = 0;
  double exponent_error = 0;  // upper bound for any exponent in f32
};
ReferenceSoftmaxRow row_of(const AttentionInputs&, std::int64_t head, std::int64_t query);

}  // namespace trellis::sim::core::attention
