// Simulated times with random software delays: the options that ask for them, and the results in words and JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/cluster/answer/noise.h"
#include "tools/program/cli_app.h"

namespace trellis::tools {

void add_noise_options(CLI::App&, sim::NoiseOptions&);

void note_seed(const sim::NoiseOptions&);                         // puts it into the output's origin, if there is noise
std::string noise_words(const sim::NoisyTimes&);                  // "13 us to 17 us, half of 100 up to 15 us, ..."
void put_noise(nlohmann::ordered_json&, const sim::NoisyTimes&);  // writes nothing when there are no times

}  // namespace trellis::tools
