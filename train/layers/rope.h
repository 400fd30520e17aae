// How fast each pair of a head's elements turns with the position.
#pragma once

#include <cstddef>
#include <vector>

#include "train/config/config.h"

namespace trellis::train {

struct Rope {
  std::size_t turned = 0;  // elements of a head; 0: none
  double theta = 10000;
  RopeScaling scaling = {};
  std::size_t positions = 2048;  // max_position_embeddings
};

// Of each of turned / 2 pairs, in angle a position, where sequences have `length` positions.
std::vector<double> rope_frequencies(const Rope&, std::size_t length);

// By which cosines and sines are multiplied.
double rope_factor(const Rope&);

}  // namespace trellis::train
