// All begin with warm-up: 0 at the first step, the whole rate after warmup_steps. Then LinearAnnealingWithWarmUp falls
// to min_lr at max_steps; CosineAnnealing falls along half a cosine until constant_steps before max_steps, and stays;
// constant stays at the rate.
#include "train/config/optimizer_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "text/registry.h"
#include "train/config/plugin_code.h"

namespace trellis::train {
namespace {

text::Registry<RateSchedule>& registry() {
  static text::Registry<RateSchedule> all("schedule");
  return all;
}

double warm_up(const OptimizerConfig& o, const ScheduleConfig& s, std::int64_t step) {
  return o.learning_rate * static_cast<double>(step - 1) / static_cast<double>(s.warmup_steps);
}

double part_done(const ScheduleConfig& s, std::int64_t step, std::int64_t steps, std::int64_t flat) {
  const std::int64_t falling = std::max<std::int64_t>(1, steps - s.warmup_steps - flat);
  return std::min(1.0, static_cast<double>(step - 1 - s.warmup_steps) / static_cast<double>(falling));
}

double constant(const OptimizerConfig& o, const ScheduleConfig& s, std::int64_t step, std::int64_t) {
  return step <= s.warmup_steps ? warm_up(o, s, step) : o.learning_rate;
}

double linear(const OptimizerConfig& o, const ScheduleConfig& s, std::int64_t step, std::int64_t steps) {
  if (step <= s.warmup_steps) return warm_up(o, s, step);
  return std::max(s.min_lr, o.learning_rate * (1 - part_done(s, step, steps, 0)));
}

double cosine(const OptimizerConfig& o, const ScheduleConfig& s, std::int64_t step, std::int64_t steps) {
  if (step <= s.warmup_steps) return warm_up(o, s, step);
  const double turn = std::numbers::pi * part_done(s, step, steps, s.constant_steps);
  return s.min_lr + (o.learning_rate - s.min_lr) * (1 + std::cos(turn)) / 2;
}

const RegisteredRateSchedule constants({.name = "constant", .rate = constant});
const RegisteredRateSchedule linears({.name = "LinearAnnealingWithWarmUp", .rate = linear});
const RegisteredRateSchedule cosines({.name = "CosineAnnealing", .rate = cosine});

}  // namespace

RegisteredRateSchedule::RegisteredRateSchedule(RateSchedule schedule) {
  register_from(__builtin_return_address(0), registry(), std::move(schedule));
}

const RateSchedule& rate_schedule_named(std::string_view name) {
  return registry().named(name, "model.optim.sched.name is");
}

double learning_rate(const OptimizerConfig& o, const ScheduleConfig& s, std::int64_t step, std::int64_t steps) {
  return rate_schedule_named(s.name).rate(o, s, step, s.max_steps > 0 ? s.max_steps : steps);
}

}  // namespace trellis::train
