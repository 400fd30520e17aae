// LAMB: a direction like AdamW's for each tensor, scaled to the norm of the tensor's parameters. Two passes over
// memory, because no element can be updated before the norms over the whole tensor are known.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/optimizers/parameter.h"

namespace trellis::kernels {

struct LambOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;
  std::uint64_t step = 1;       // counted from 1
  bool bias_correction = true;  // divide the moments by 1 - beta^step
  Random random = {};           // of bf16_stochastic
  int threads = 1;
};

// The sums of squares of the parameters and of the direction u (see lamb_moments), over a tensor or a shard of it. The
// caller adds up the shards' sums before it calls trust_ratio.
struct LambSquaredNorms {
  double parameters = 0;  // sum of squares
  double direction = 0;
};

// First pass: m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g g, and the sums over the parameters and over
// u = m / b1 / (sqrt(v) / sqrt(b2) + epsilon) + wd p, in the order that dot.h defines. Moments are f32.
LambSquaredNorms lamb_moments(const Weights&, const Gradient&, const Moments&, std::size_t n, const LambOptions&);

// |p| / |u|, or 1 where one of them is 0. NaN if a sum is not finite, and the second pass would then make the whole
// tensor NaN: check the sums before it. They show a NaN anywhere in the tensor, and an infinity anywhere but in second
// moments.
double trust_ratio(const LambSquaredNorms&);

// Second pass: p = p - lr trust u; u is computed again from the moments, which is cheaper than to store it.
void lamb_apply(const Weights&, const Moments&, double trust, std::size_t n, const LambOptions&);

// Both, for a tensor that is here as a whole. Returns the trust ratio.
double lamb(const Weights&, const Gradient&, const Moments&, std::size_t n, const LambOptions&);

// What lamb kernels' settings point to: u = (m unbias) / (sqrt(v) root + epsilon) + decay p, p = p - rate u.
struct LambSettings {
  StateRandomKeys random;
  float scale, beta1, rest1, beta2, rest2, unbias, root, epsilon, decay, rate;
};

}  // namespace trellis::kernels
