// How fast each pair of a head's elements turns with the position.
#pragma once

#include <vector>

#include "train/config/config.h"

namespace trellis::train {

// Of each of turned / 2 pairs, in angle a position.
std::vector<double> rope_frequencies(std::size_t turned, double theta, const RopeScaling&);

}  // namespace trellis::train
