// A rank's step as a Chakra execution trace (schema 0.0.4), which ASTRA-sim and `trellis sim` read.
#pragma once

#include <string>
#include <vector>

#include "train/whole/rank_step.h"

namespace trellis::train {

// `classes`: as classes_of gives them. Computations have FLOPs and bytes and no duration.
std::string chakra_trace(const std::vector<RankStep>& classes, Rank rank);

// The process groups that the traces name by numbers, and their ranks: JSON, as ASTRA-sim reads it beside them.
std::string chakra_groups(const std::vector<RankStep>& classes);

}  // namespace trellis::train
