// What a configuration with experts must keep to.
#pragma once

#include "train/config/config.h"

namespace trellis::train {

// data: data-parallel ranks, times those of the context axis. Throws invalid_argument that names the key, its value and
// what was expected.
void check_experts(const StepConfig&, Rank data);

// Words for the routing that predictions of memory and time assume; empty without experts.
std::string routing_words(const StepConfig&);

}  // namespace trellis::train
