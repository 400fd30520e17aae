// Clipping of gradients by their global norm.
#pragma once

namespace trellis::kernels {

// What gradients of this norm are multiplied by: min(1, max_norm / (norm + epsilon)). A norm that is NaN gives NaN, an
// infinite one 0: the caller looks at the norm before it takes the step. An infinite max_norm never clips. No
// pass over the gradients is needed: an optimizer's Gradient takes the factor as a scale.
double clip_factor(double norm, double max_norm, double epsilon = 1e-6);

}  // namespace trellis::kernels
