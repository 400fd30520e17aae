// The functions of the Scalar engine, on rows of floats.
#pragma once

#include <cstddef>

#include "sim/core/attributes.h"

namespace trellis::sim::core {

// y[i] = function(x[i]). slope: of lrelu and prelu below 0. y may not overlap x.
//
// The hardware interpolates in tables whose errors are not published; here a result is near the true one. In units of
// the last place: copy, identity, square, relu, lrelu, prelu, abs, sign, is_finite, sqrt and reciprocal are as the f32
// operation rounds, 0.5 (1 with lrelu's and prelu's slope); rsqrt and abs_reciprocal_sqrt are two of those, 1.5; exp,
// sigmoid, silu, gelu, gelu_apprx_tanh and their slopes are those of kernels/ bit for bit, with the bounds that
// elementary.h and activation.h say; the rest is computed in f64 and rounded once, 0.51. Nothing is outside of a valid
// range here; what the hardware makes of it there is not modelled.
void evaluate(Function, const float* x, float* y, std::size_t n, float slope = 0);

}  // namespace trellis::sim::core
