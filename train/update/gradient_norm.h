// The norm of all gradients of all ranks, before clipping.
#pragma once

#include <vector>

#include "train/config/config.h"
#include "train/update/optimizer_state.h"

namespace trellis::train {

// norm: one f64.
void write_norm(Writer&, const StepConfig&, const std::vector<OptimizerState>&, TensorId norm);

// The factor that makes gradients means. It is 1 unless they are sums over the ranks, as with ZeRO-1.
double average(const Writer&, const StepConfig&);

}  // namespace trellis::train
