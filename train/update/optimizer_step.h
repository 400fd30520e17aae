// The end of a step: the norm of all gradients, clipping, the update rule, and with ZeRO-1 the gathering of parameters.
#pragma once

#include <vector>

#include "train/config/config.h"
#include "train/update/optimizer_state.h"

namespace trellis::train {

// With ZeRO-1: which parameters are gathered together after the update, those of one block at most. A bucket is waited
// for in the next step, where the block begins. `ends`: how many parameters there are up to the end of each block.
struct AllGatherBucket {
  std::vector<std::size_t> states;
  int ticket = 0;
  Axis axis = Axis::data;
};
std::vector<AllGatherBucket> parameter_buckets(Writer&, const StepConfig&, const std::vector<OptimizerState>&,
                                               const std::vector<std::size_t>& ends);

// norm: one f64, the norm before clipping; no_tensor if clipping is off.
void write_update(Writer&, const StepConfig&, const std::vector<OptimizerState>&, TensorId norm,
                  const std::vector<AllGatherBucket>&);

}  // namespace trellis::train
