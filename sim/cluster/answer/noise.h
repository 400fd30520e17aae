// Simulated times with random software delays: the same pricing, repeated with several seeds.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/cluster/machine/machine.h"

namespace trellis::sim {

struct NoiseOptions {
  int runs = 0;  // 0: no noise
  std::uint64_t seed = 1;
};

// Throws invalid_argument when noise is asked for and the machine's software has none.
void expect_noise(const NoiseOptions&, const Machine&, const std::string& era);

struct NoisyTimes {
  std::vector<Time> times;  // ascending
  Time most() const { return times.empty() ? 0 : times.back(); }
  std::string interrupted;  // what is missing; empty: nothing is
};
// `time_by` returns the time for a seed, or `forever` when it was stopped.
NoisyTimes draw_noise(const NoiseOptions&, const std::function<Time(std::uint64_t seed)>& time_by);

Time quantile(const NoisyTimes&, double part);  // the least time that the fraction `part` of all times does not exceed

}  // namespace trellis::sim
