// The two-layer perceptron of a block: SwiGLU (gate, up, down) or GELU (up, down). Communicates in its linear layers.
#pragma once

#include "kernels/layers/activation.h"
#include "train/layers/linear.h"

namespace trellis::train {

struct MlpOptions {
  enum class Kind : std::uint8_t { swiglu, gelu } kind = Kind::swiglu;
  kernels::Activation activation = kernels::Activation::gelu_erf;
  std::size_t hidden = 0, inner = 0;
  LinearOptions linear;
  double output_deviation = 0.02;
  std::vector<std::string> names = {"gate_proj", "up_proj", "down_proj"};  // without a gate: {up, down}
};

class Mlp {
 public:
  struct Saved {
    TensorId x = no_tensor, gate = no_tensor, up = no_tensor, inner = no_tensor;
  };

  Mlp(Writer&, Parameters&, const std::string& name, const MlpOptions&);
  TensorId forward(Writer&, TensorId x, Saved&) const;
  TensorId backward(Writer&, TensorId dy, const Saved&) const;

 private:
  MlpOptions options_;
  ColumnParallel up_;
  RowParallel down_;
};

}  // namespace trellis::train
