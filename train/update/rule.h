// Update rules: what an optimizer keeps of each parameter, and the operations it writes. A rule is a file that
// registers it under its model.optim.name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/optimizers/parameter.h"
#include "train/config/config.h"
#include "train/update/state.h"

namespace trellis::train {

struct Update {
  const Config& config;
  const std::vector<ParameterState>& states;
  TensorId norm = no_tensor;  // of all gradients; no_tensor if clipping is off
  TensorId sums = no_tensor;  // what prepare() wrote for the parameters, if it did
};

struct UpdateRule {
  std::string name;
  bool second_moment = true;  // beside the first
  // Before any parameter is written; for what needs sums over whole parameters. May be empty.
  std::function<void(Writer&, Update&)> prepare = {};
  // One parameter's update.
  std::function<void(Writer&, const Update&, std::size_t state)> write;
};

struct RegisteredUpdateRule {
  explicit RegisteredUpdateRule(UpdateRule);
};

// Throws invalid_argument with the names that there are.
const UpdateRule& update_rule_named(std::string_view name);

// A rule that is a formula of each element, whatever type parameters are kept in and however they are cut up.
struct ElementUpdate {
  float* values;          // f32
  const float* gradient;  // averaged and clipped
  float *first, *second;  // moments: zeros before the first step; second: null where the rule has none
  std::size_t n;
  double learning_rate, weight_decay;  // of this parameter
  std::int64_t step;                   // counted from 1
  const OptimizerConfig& config;
};
UpdateRule element_rule(std::string name, std::function<void(const ElementUpdate&)>, bool second_moment = true);

// Elements that follow each other here and in the whole tensor, as the kernels take them: random bits are counted in
// the whole.
struct UpdateRun {
  kernels::Weights weights;
  kernels::Gradient gradient;
  float *first = nullptr, *second = nullptr;
  std::size_t n = 0;
  kernels::Random random;
};

// How a parameter's update reads and writes memory; operations keep a copy.
class UpdatedParameter {
 public:
  UpdatedParameter(const Writer&, const Update&, std::size_t state);

  // Calls work for each run, unless the norm is no finite number: then parameters stay as they are, and the caller sees
  // the norm.
  void each_run(const Memory&, const StepInputs&, const std::function<void(const UpdateRun&)>& work) const;

  double weight_decay() const { return weight_decay_; }
  double learning_rate(const StepInputs& now) const { return now.learning_rate * rate_; }
  double elements() const { return static_cast<double>(state_.slice.elements()); }
  // The shape of an operation of the rule on these elements.
  schedule::OperationShape shape(std::string_view kind) const;
  std::vector<TensorId> reads() const;
  std::vector<TensorId> writes() const;

 private:
  ParameterState state_;
  kernels::Keep keep_;
  std::uint64_t seed_;
  double average_, max_norm_, weight_decay_, rate_;
  TensorId norm_;
  DType type_, gradient_type_;
};

}  // namespace trellis::train
