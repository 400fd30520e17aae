// Which algorithm the runtime of a record takes, by its generation and the size.
#pragma once

#include <vector>

#include "measure/published/record.h"
#include "sim/cluster/choose/pricer.h"

namespace trellis::measure {

// The configs among which the runtime chooses for so many bytes of the larger buffer. The fastest is taken as its
// choice.
std::vector<sim::AlgorithmConfig> runtime_configs(const Record&, const sim::Pricer&, sim::Rank nodes, double bytes);

}  // namespace trellis::measure
