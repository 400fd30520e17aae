// How much of a step's FLOPs is the model's own work.
#pragma once

#include "train/whole/rank_step.h"

namespace trellis::train {

// A forward pass and a backward one that takes twice as much: 3. With adapters, whose weights have no gradients: 2.
int passes_of_model(const StepConfig&);

// This rank's model FLOPs in a step: those of its forward passes, times passes_of_model. Recomputation does not count.
double model_flops(const RankStep&);

}  // namespace trellis::train
