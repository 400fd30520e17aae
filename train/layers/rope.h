// How fast each pair of a head's elements turns with the position.
#pragma once

#include <cstddef>
#include <vector>

#include "train/layers/attention.h"

namespace trellis::train {

// The frequency of each of turned / 2 pairs, as an angle per position, for sequences of `length` positions.
std::vector<double> rope_frequencies(const Rope&, std::size_t length);

// The factor by which cosines and sines are multiplied.
double rope_factor(const Rope&);

}  // namespace trellis::train
