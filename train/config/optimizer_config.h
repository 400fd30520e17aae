// How parameters are updated: the rule, its numbers, the learning rate's schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace trellis::train {

// How one parameter is updated, where that differs from the others.
struct ParameterGroup {
  double rate = 1;                                                 // times the learning rate
  double weight_decay = std::numeric_limits<double>::quiet_NaN();  // NaN: the optimizer's
};

struct OptimizerConfig {
  std::string name = "adamw";  // of an update rule: adamw, lamb, sgd
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  double momentum = 0.9;           // of sgd
  bool nesterov = false;           // of sgd
  bool decay_last = false;         // adamw: weights decay after the update, as in Hugging Face's old AdamW
  bool norm_weight_decay = false;  // do_layer_norm_weight_decay
  bool clip = true;
  double max_norm = 1;
  double norm_type = 2;        // p of the norm; infinity is allowed
  bool fp32_gradients = true;  // accumulate in f32
  std::size_t bucket_mb = 0;   // 0: 512 of all_reduce; 130, or 65 with masters, of reduce_scatter
  // A program's own groups, by the parameter's name. None: biases and norms do not decay.
  std::function<ParameterGroup(const std::string& name)> group = {};
};

struct ScheduleConfig {
  std::string name = "constant";  // constant, LinearAnnealingWithWarmUp, CosineAnnealing
  std::int64_t warmup_steps = 0, max_steps = 0, constant_steps = 0;
  double min_lr = 0;
};

struct RateSchedule {
  std::string name;
  // step: of the optimizer, counted from 1. steps: the schedule's max_steps or, where it has none, the trainer's.
  std::function<double(const OptimizerConfig&, const ScheduleConfig&, std::int64_t step, std::int64_t steps)> rate;
};

// Defining one at namespace scope registers it.
struct RegisteredRateSchedule {
  explicit RegisteredRateSchedule(RateSchedule);
};

// Throws invalid_argument that lists the known ones.
const RateSchedule& rate_schedule_named(std::string_view);

// steps: max_steps where the schedule has none of its own.
double learning_rate(const OptimizerConfig&, const ScheduleConfig&, std::int64_t step, std::int64_t steps);

}  // namespace trellis::train
