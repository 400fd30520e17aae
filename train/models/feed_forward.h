// What stands behind attention in a layer: a perceptron, a mixture of experts, or experts and a perceptron that all
// tokens go through, whose results are added.
#pragma once

#include <optional>

#include "train/layers/experts/experts.h"
#include "train/layers/mlp.h"
#include "train/models/model_interface.h"

namespace trellis::train {

struct FeedForwardOptions {
  std::optional<MlpOptions> mlp;
  std::optional<ExpertOptions> experts;
  std::string shared = "shared_experts";  // the perceptron's name, where there are experts too
};

class FeedForward {
 public:
  struct Saved {
    Mlp::Saved mlp;
    Experts::Saved experts;
  };
  FeedForward(Writer&, Parameters&, const std::string& name, const FeedForwardOptions&);
  TensorId forward(Writer&, TensorId x, Saved&) const;
  TensorId backward(Writer&, TensorId dy, const Saved&) const;
  void update(Writer&) const;

 private:
  std::optional<Experts> experts_;
  std::optional<Mlp> mlp_;
};

// The configuration's options of a layer's experts, without their names; none if the layer has only a perceptron.
std::optional<ExpertOptions> expert_options(const BlockContext&, std::size_t layer);

}  // namespace trellis::train
