// The activation functions of the Scalar engine, on rows of floats.
#pragma once

#include <cstddef>

#include "sim/core/program/attributes.h"

namespace trellis::sim::core {

// y[i] = function(x[i]). slope: of lrelu and prelu below 0. y may not overlap x.
//
// The hardware interpolates in tables, whose errors are not published; here a result is close to the exact one. Errors
// in units in the last place: copy, identity, square, relu, lrelu, prelu, abs, sign, is_finite, sqrt and reciprocal are
// one f32 operation, 0.5 (1 with the slope of lrelu and prelu); rsqrt and abs_reciprocal_sqrt are two, 1.5; exp,
// sigmoid, silu, gelu, gelu_apprx_tanh and their slopes equal those of kernels/ bit for bit, with the bounds in
// elementary.h and activation.h; the rest is computed in f64 and rounded once, 0.51. Every input is valid here: what
// the hardware does with inputs outside of a function's valid range is not modelled.
void evaluate(ActivationFunction, const float* x, float* y, std::size_t n, float slope = 0);

}  // namespace trellis::sim::core
