// Clipping of gradients by their global norm.
#pragma once

#include <cstddef>

#include "kernels/reduce/elementwise.h"

namespace trellis::kernels {

// What gradients of this norm are multiplied by: min(1, max_norm / (norm + epsilon)). A norm that is NaN gives NaN, an
// infinite one 0: the caller looks at the norm before it takes the step. An infinite max_norm never clips.
double clip_factor(double norm, double max_norm, double epsilon = 1e-6);

// x[i] *= the factor, unless that is 1. An optimizer needs no such pass: its Gradient takes the factor as a scale.
void clip(DType, void* x, std::size_t n, double norm, double max_norm, const ElementwiseOptions& = {});

}  // namespace trellis::kernels
