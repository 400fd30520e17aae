// The affine pattern of iota and affine_select: a number for each row and element.
#pragma once

#include "sim/core/program/instruction_kind.h"

namespace trellis::sim::core {

// The number at a row and an element: the attribute start, + row * the attribute rows, + the sum over dimensions of
// index * step. Steps are given from the innermost dimension outwards: step (1 if absent), step1 and so on. If step is
// the only one, the numbers of a row increase by it from each element to the next.
class AffinePattern {
 public:
  AffinePattern(const BoundInstruction&, const View& shape);
  void row(std::int64_t row, std::int64_t* to) const;

 private:
  const View& shape_;
  std::int64_t start_, row_step_;
  std::array<std::int64_t, most_dims> steps_ = {};  // as the view's dimensions: outermost first
};

}  // namespace trellis::sim::core
