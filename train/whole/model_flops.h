// How much of a step's FLOPs is the model's own work: its products and attention, however ranks share them out. What is
// computed again, what several ranks compute alike, and the empty rows of experts with a capacity do not count.
#pragma once

#include "train/whole/rank_step.h"

namespace trellis::train {

// A forward pass and a backward one that takes twice as much: 3. With adapters, whose weights have no gradients: 2.
int passes_of_model(const StepConfig&);

// This rank's part of them in a step: those of its forward passes, times passes_of_model.
double model_flops(const RankStep&);

}  // namespace trellis::train
