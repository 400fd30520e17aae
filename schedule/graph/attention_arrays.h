// The arrays that attention without flash passes through memory: each has an element for every pair of a query and a
// key, also of pairs under the causal mask. The core's time (sim/cluster/operation/kinds/attention.cpp) and a rank's
// memory (train/layers/attention) both follow from this list.
#pragma once

#include <array>

#include "schedule/graph/operation_shape.h"

namespace trellis::schedule {

struct PairArray {
  const char* name;
  int forward, backward;  // how many times a pass writes or reads it

  // From the forward pass to the backward one; else it takes memory while the backward pass computes.
  constexpr bool kept() const { return forward > 0 && backward > 0; }
};

// Masks of dropout are drawn again for the backward pass, so no array has them.
inline constexpr std::array pair_arrays = {
    PairArray{"probabilities", 2, 1},    // written, and read to weigh values; then read
    PairArray{"score_gradients", 0, 4},  // of probabilities: written, read; in its place of scores: written, read
};

struct PairPasses {
  double forward = 0, backward = 0;
};
constexpr PairPasses pair_passes(const OperationShape& attention) {
  PairPasses sum;
  if (!attention.flash)
    for (const PairArray& a : pair_arrays) sum.forward += a.forward, sum.backward += a.backward;
  return sum;
}

}  // namespace trellis::schedule
