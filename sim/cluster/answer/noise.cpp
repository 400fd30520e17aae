#include "sim/cluster/answer/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/refuse.h"

namespace trellis::sim {

void expect_noise(const NoiseOptions& o, const Machine& machine, const std::string& era) {
  if (o.runs > 0 && machine.overheads(era).noise <= 0)
    text::refuse(
        "--noise: {} has no software that is late by chance: expected a machine with a chip, and "
        "noise.software above 0",
        machine.name());
}

NoisyTimes draw_noise(const NoiseOptions& o, const std::function<Time(std::uint64_t seed)>& time_by) {
  NoisyTimes found;
  for (int i = 0; i < o.runs && found.interrupted.empty(); ++i) {
    const Time time = time_by(o.seed + static_cast<std::uint64_t>(i));
    if (time == forever)
      found.interrupted = fmt::format("{} of {} times with noise are missing", o.runs - i, o.runs);
    else
      found.times.push_back(time);
  }
  std::ranges::sort(found.times);
  return found;
}

Time quantile(const NoisyTimes& noisy, double part) {
  const auto count = static_cast<double>(noisy.times.size());
  return noisy.times[static_cast<std::size_t>(std::max(1.0, std::ceil(part * count))) - 1];
}

}  // namespace trellis::sim
