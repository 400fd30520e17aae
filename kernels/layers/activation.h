// Activation functions and their gradients, element by element.
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

// silu: x s(x), s(x) = 1 / (1 + e^-x). gelu_erf: x times the probability that a standard normal number is less than x.
// gelu_tanh: x (1 + tanh u) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3), computed as x s(2u), which is the same and
// keeps the left tail's relative accuracy.
enum class Activation : std::uint8_t { silu, gelu_erf, gelu_tanh };
inline constexpr std::size_t activation_count = 3;

constexpr std::string_view name(Activation a) {
  constexpr std::string_view names[] = {"silu", "gelu_erf", "gelu_tanh"};
  return names[static_cast<std::size_t>(a)];
}

// Types are f32 or bf16, the same for all operands; arithmetic is in f32, with one rounding at the store. At -infinity
// all three are -0, their limit. An output may be an input of the same call.
void activate(Activation, DType, const void* x, void* y, std::size_t n, int threads = 1);

// dx = dy * (the function's slope at x).
void activate_gradient(Activation, DType, const void* dy, const void* x, void* dx, std::size_t n, int threads = 1);

// y = silu(gate) * up.
void swiglu(DType, const void* gate, const void* up, void* y, std::size_t n, int threads = 1);

// dgate = dy * up * (silu's slope at gate), dup = dy * silu(gate).
void swiglu_gradient(DType, const void* dy, const void* gate, const void* up, void* dgate, void* dup, std::size_t n,
                     int threads = 1);

// Beyond these a function is x or 0 in f32, and its slope 1 or 0; arguments are clamped to them, so nothing overflows.
inline constexpr float silu_reach = 128, gelu_reach = 64;

// 2u = x (a + b x^2), and its slope a + 3 b x^2.
inline constexpr float gelu_a = 0x1.988454p+0F, gelu_b = 0x1.2444f2p-4F, gelu_3b = 0x1.b6676cp-3F;

}  // namespace trellis::kernels
