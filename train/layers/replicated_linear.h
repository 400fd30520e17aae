// A linear layer that every tensor rank has whole: y = x W^T + b. It communicates nothing; where its rows are scattered
// (sequence parallelism), its gradients are partial sums.
#pragma once

#include "train/layers/parameter.h"

namespace trellis::train {

class ReplicatedLinear {
 public:
  ReplicatedLinear(Writer&, Parameters&, const std::string& name, std::size_t inputs, std::size_t outputs,
                   double deviation, bool partial);
  // y of the first `rows` rows of x, in the given type.
  TensorId forward(Writer&, TensorId x, std::size_t rows, DType) const;
  TensorId backward(Writer&, TensorId dy, TensorId x) const;  // dx, of as many rows as dy

 private:
  std::size_t inputs_, outputs_;
  const Parameter* weight_;
  const Parameter* bias_;
};

}  // namespace trellis::train
