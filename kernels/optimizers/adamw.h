// AdamW: one pass over parameters, gradient and both moments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/optimizers/parameter.h"

namespace trellis::kernels {

// With b1 = 1 - beta1^step and b2 = 1 - beta2^step, m and v the moments after this gradient:
enum class AdamWDecayOrder : std::uint8_t {
  decay_first,  // p = p (1 - lr wd) - lr / b1 * m / (sqrt(v) / sqrt(b2) + epsilon)
  decay_last    // p = (p - lr sqrt(b2) / b1 * m / (sqrt(v) + epsilon)) (1 - lr wd)
};

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  std::uint64_t step = 1;  // counted from 1
  AdamWDecayOrder order = AdamWDecayOrder::decay_first;
  Random random = {};  // of bf16_stochastic and of bf16 moments
  int threads = 1;
};

// m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g g, and the parameters by the order, all in f32 with a
// rounding after each operation. The update uses the moments before they are rounded to bf16. NaN and infinity in an
// element stay in it; NaNs that come out are all the one quiet positive NaN.
void adamw(const Weights&, const Gradient&, const Moments&, std::size_t n, const AdamWOptions&);

// What an adamw kernel's settings point to. `before` and `after` apply the weight decay: p = (p before - rate (m /
// (sqrt(v) root + epsilon))) after.
struct AdamWSettings {
  StateRandomKeys random;
  float scale, beta1, rest1, beta2, rest2, root, epsilon, rate, before, after;
};

}  // namespace trellis::kernels
