// The learning rate of each step.
#pragma once

#include <cstdint>

#include "train/config/config.h"

namespace trellis::train {

// step: of the optimizer, counted from 1. All begin with warm-up: 0 at the first step, the whole rate after
// warmup_steps. Then LinearAnnealingWithWarmUp falls to min_lr at max_steps; CosineAnnealing falls along half a cosine
// until constant_steps before max_steps, and stays; constant stays at the rate. steps: max_steps where the schedule has
// none of its own.
double learning_rate(const OptimizerConfig&, const ScheduleConfig&, std::int64_t step, std::int64_t steps);

}  // namespace trellis::train
