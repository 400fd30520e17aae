// What a configuration with experts must keep to.
#pragma once

#include "train/config/config.h"

namespace trellis::train {

// data: data-parallel ranks, times those of the context axis. Throws invalid_argument that names the key, its value and
// what was expected.
void check_experts(const StepConfig&, Rank data);

// How tokens are taken to go to experts where memory and time are told before anything runs; empty without experts.
std::string routing_words(const StepConfig&);

}  // namespace trellis::train
