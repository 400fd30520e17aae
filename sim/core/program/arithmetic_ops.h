// The arithmetic vocabulary of instructions: operations of two operands, and functions of one.
#pragma once

#include <cstdint>
#include <string_view>

namespace trellis::sim::core {

enum class AluOp : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  max,
  min,
  pow,
  mod,
  rsqrt,
  abs_max,
  abs_min,
  average,
  is_equal,
  not_equal,
  is_gt,
  is_ge,
  is_lt,
  is_le,
  logical_and,
  logical_or,
  logical_xor,
  logical_not,
  bitwise_and,
  bitwise_or,
  bitwise_xor,
  bitwise_not,
  shift_left,
  shift_right,
  arith_shift_right,
  abs,
  square,
  relu,
  reciprocal,
  bypass,
};

enum class ActivationFunction : std::uint8_t {
  copy,
  identity,
  square,
  sqrt,
  rsqrt,
  exp,
  log,
  reciprocal,
  relu,
  lrelu,
  prelu,
  sigmoid,
  tanh,
  softplus,
  silu,
  silu_dx,
  gelu,
  gelu_dx,
  gelu_apprx_tanh,
  gelu_apprx_sigmoid,
  gelu_apprx_sigmoid_dx,
  mish,
  erf,
  erf_dx,
  sin,
  arctan,
  abs,
  sign,
  is_finite,
  tanh_dx,
  sigmoid_dx,
  abs_reciprocal_sqrt,
  ln1p,
};

std::string_view name(AluOp);
std::string_view name(ActivationFunction);

}  // namespace trellis::sim::core
