// Times with software that is late by chance: so many seeds, one after the other, and what is said of them.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/machine.h"
#include "tools/cli_app.h"

namespace trellis::tools {

struct NoiseOptions {
  int runs = 0;  // 0: none
  std::uint64_t seed = 1;
};

void add_noise_options(CLI::App&, NoiseOptions&);
// Throws invalid_argument where noise is asked for and the machine's software has none.
void expect_noise(const NoiseOptions&, const sim::Machine&, const std::string& era);

struct Noisy {
  std::vector<sim::Time> times;  // ascending
  sim::Time most() const { return times.empty() ? 0 : times.back(); }
  std::string interrupted;  // what is missing; empty: nothing
};
// `time_by`: a seed's time; forever: it was stopped.
Noisy draw_noise(const NoiseOptions&, const std::function<sim::Time(std::uint64_t seed)>& time_by);

std::string noise_words(const Noisy&);                  // "13 us to 17 us, half of 100 up to 15 us, ..."
void put_noise(nlohmann::ordered_json&, const Noisy&);  // nothing where there are no times
sim::Time quantile(const Noisy&, double part);          // the part of them that are no longer is at least this

}  // namespace trellis::tools
