// The input of an update rule: the update of a step, and one of its parameters with what the optimizer keeps for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "kernels/optimizers/parameter.h"
#include "train/config/config.h"
#include "train/update/optimizer_state.h"

namespace trellis::train {

struct UpdateContext {
  const StepConfig& config;
  const std::vector<OptimizerState>& states;
  TensorId norm = no_tensor;  // of all gradients; no_tensor if clipping is off
  TensorId sums = no_tensor;  // what prepare() wrote for the parameters, if it did
};

// Elements that follow each other here and in the whole tensor, as the kernels take them. Random bits are numbered by
// an element's place in the whole.
struct UpdateSpan {
  kernels::Weights weights;
  kernels::Gradient gradient;
  float *first = nullptr, *second = nullptr;
  std::size_t n = 0;
  kernels::Random random;
};

// How a parameter's update reads and writes memory; operations keep a copy.
class ParameterUpdate {
 public:
  ParameterUpdate(const Writer&, const UpdateContext&, std::size_t state);

  // Calls work for each span, unless the norm is not finite: then parameters stay as they are. The caller can tell by
  // the norm.
  void each_run(const Memory&, const StepInputs&, const std::function<void(const UpdateSpan&)>& work) const;

  double weight_decay() const { return weight_decay_; }
  double learning_rate(const StepInputs& now) const { return now.learning_rate * rate_; }
  double elements() const { return static_cast<double>(state_.slice.elements()); }
  // The shape of an operation of the rule on these elements.
  schedule::OperationShape shape(std::string_view kind) const;
  std::vector<TensorId> reads() const;
  std::vector<TensorId> writes() const;

 private:
  OptimizerState state_;
  kernels::WeightStorage keep_;
  std::uint64_t seed_;
  double average_, max_norm_, weight_decay_, rate_;
  TensorId norm_;
  DType type_, gradient_type_;
};

}  // namespace trellis::train
