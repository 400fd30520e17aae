// Simulated times with random software delays: repeats a pricing with several seeds, and describes the results.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "tools/program/cli_app.h"

namespace trellis::tools {

struct NoiseOptions {
  int runs = 0;  // 0: no noise
  std::uint64_t seed = 1;
};

void add_noise_options(CLI::App&, NoiseOptions&);
// Throws invalid_argument when noise is asked for and the machine's software has none.
void expect_noise(const NoiseOptions&, const sim::Machine&, const std::string& era);

struct Noisy {
  std::vector<sim::Time> times;  // ascending
  sim::Time most() const { return times.empty() ? 0 : times.back(); }
  std::string interrupted;  // what is missing; empty: nothing is
};
// `time_by` returns the time for a seed, or `forever` when it was stopped.
Noisy draw_noise(const NoiseOptions&, const std::function<sim::Time(std::uint64_t seed)>& time_by);

std::string noise_words(const Noisy&);                  // "13 us to 17 us, half of 100 up to 15 us, ..."
void put_noise(nlohmann::ordered_json&, const Noisy&);  // writes nothing when there are no times
sim::Time quantile(const Noisy&, double part);          // the least time that this part of all times does not exceed

}  // namespace trellis::tools
