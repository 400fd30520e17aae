#include "train/trainer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace trellis::train {

double learning_rate(const OptimizerConfig& o, const ScheduleConfig& s, std::int64_t step, std::int64_t steps) {
  const std::int64_t done = step - 1, all = s.max_steps > 0 ? s.max_steps : steps;
  if (done < s.warmup_steps) return o.learning_rate * static_cast<double>(done) / static_cast<double>(s.warmup_steps);
  const std::int64_t flat = s.name == "CosineAnnealing" ? s.constant_steps : 0;
  const std::int64_t falling = std::max<std::int64_t>(1, all - s.warmup_steps - flat);
  const double part = std::min(1.0, static_cast<double>(done - s.warmup_steps) / static_cast<double>(falling));
  if (s.name == "LinearAnnealingWithWarmUp") return std::max(s.min_lr, o.learning_rate * (1 - part));
  if (s.name == "CosineAnnealing")
    return s.min_lr + (o.learning_rate - s.min_lr) * (1 + std::cos(std::numbers::pi * part)) / 2;
  return o.learning_rate;
}

}  // namespace trellis::train
