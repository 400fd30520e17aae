// How fast each pair of a head's elements turns with the position.
#pragma once

#include <cstddef>
#include <vector>

#include "train/layers/attention.h"

namespace trellis::train {

// Of each of turned / 2 pairs, in angle a position, where sequences have `length` positions.
std::vector<double> rope_frequencies(const Rope&, std::size_t length);

// By which cosines and sines are multiplied.
double rope_factor(const Rope&);

}  // namespace trellis::train
