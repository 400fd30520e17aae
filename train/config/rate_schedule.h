// Schedules of the learning rate. A file that defines one registers it under its model.optim.sched.name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "train/config/optimizer_config.h"

namespace trellis::train {

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
