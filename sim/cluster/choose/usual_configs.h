// The candidate algorithm configs, tried when the user names none.
#pragma once

#include <string_view>
#include <vector>

#include "sim/cluster/choose/pricer.h"

namespace trellis::sim {

// The shape of the machine as the algorithm uses it: its dimensions if the algorithm knows tori or chips, else one row.
// Dimensions of 1 are left out, here and below.
std::vector<Rank> usual_dims(std::string_view algorithm, const Machine&, Rank ranks);
// Every algorithm that can do the collective, as one row and in the machine's shapes, with several channels. Also cut
// into segments where these form a pipeline and no segment is empty, and with direct exchange at every level.
std::vector<AlgorithmConfig> usual_configs(const Pricer&, double bytes);

}  // namespace trellis::sim
