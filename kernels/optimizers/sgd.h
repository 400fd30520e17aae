// SGD with momentum: one pass over parameters, gradient and momentum.
#pragma once

#include <cstddef>

#include "kernels/optimizers/parameter.h"

namespace trellis::kernels {

struct SgdOptions {
  double learning_rate = 1e-2;
  double momentum = 0.9;
  double dampening = 0;     // the gradient enters the momentum times 1 - dampening
  double weight_decay = 0;  // of the coupled kind: added to the gradient, times the parameter
  bool nesterov = false;
  Random random = {};  // of bf16_stochastic and of bf16 momentum
  int threads = 1;
};

// g = scale gradient + weight_decay p; momentum = mu momentum + (1 - dampening) g; p = p - lr d, where d is the
// momentum, or g + mu momentum with nesterov: in f32 with a rounding after each operation. The momentum, f32 or bf16
// (rounded stochastically), is zeros before the first step; where mu is 0, with null for momentum, d is g.
void sgd(const Weights&, const Gradient&, DType momentum_type, void* momentum, std::size_t n, const SgdOptions&);

// What an sgd kernel's settings point to.
struct SgdSettings {
  StateRandomKeys random;
  float scale, decay, momentum, rest, rate;
  bool nesterov;
};

}  // namespace trellis::kernels
