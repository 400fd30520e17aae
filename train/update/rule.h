// Update rules: what an optimizer keeps of each parameter, and the operations it writes. A rule is a file that
// registers it under its model.optim.name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "train/config/optimizer_config.h"

namespace trellis::train {

class Writer;
struct UpdateContext;

struct UpdateRule {
  std::string name;
  bool second_moment = true;  // in addition to the first
  // Called before any parameter's update is written, for rules that need sums over whole parameters. May be empty.
  std::function<void(Writer&, UpdateContext&)> prepare = {};
  // One parameter's update.
  std::function<void(Writer&, const UpdateContext&, std::size_t state)> write;
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

}  // namespace trellis::train
