// An update rule and a schedule of one's own, which register themselves.
#include <trellis/train.h>

#include <algorithm>
#include <cmath>

namespace {

using namespace trellis::train;

// Lion: the sign of a mixture of gradient and momentum.
const RegisteredUpdateRule rule(element_rule(
    "lion",
    [](const ElementUpdate& u) {
      for (std::size_t i = 0; i < u.n; ++i) {
        const float mixed = 0.9F * u.first[i] + 0.1F * u.gradient[i];
        const double step = (mixed > 0 ? 1 : mixed < 0 ? -1 : 0) + u.weight_decay * u.values[i];
        u.values[i] -= static_cast<float>(u.learning_rate * step);
        u.first[i] = 0.99F * u.first[i] + 0.01F * u.gradient[i];
      }
    },
    false));

const RegisteredRateSchedule schedule({
    .name = "inverse_root",
    .rate =
        [](const OptimizerConfig& o, const ScheduleConfig& s, std::int64_t step, std::int64_t) {
          const double warm = std::max<double>(1, s.warmup_steps), now = static_cast<double>(step);
          return o.learning_rate * std::min(now / warm, std::sqrt(warm / now));
        },
});

}  // namespace
