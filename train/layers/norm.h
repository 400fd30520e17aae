// RMSNorm and LayerNorm of runs of `columns` elements: whole rows, or each head of a row. They communicate nothing;
// where ranks have different rows or heads, their weights' gradients are partial sums.
#pragma once

#include "train/layers/parameter.h"

namespace trellis::train {

class Norm {
 public:
  enum class Kind : std::uint8_t { rms, layer };
  struct Saved {
    TensorId x = no_tensor, scales = no_tensor, means = no_tensor;
  };

  Norm(Writer&, Parameters&, Kind, const std::string& name, std::size_t columns, float epsilon, bool partial);
  TensorId forward(Writer&, TensorId x, Saved&) const;
  TensorId backward(Writer&, TensorId dy, const Saved&) const;  // dx; adds to the weights' gradients

 private:
  Kind kind_;
  std::size_t columns_;
  float epsilon_;
  const Parameter* weight_;
  const Parameter* bias_ = nullptr;
};

}  // namespace trellis::train
