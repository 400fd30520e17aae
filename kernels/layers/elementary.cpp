#include "kernels/layers/elementary.h"

#include <bit>
#include <cmath>

namespace trellis::kernels {
namespace {

float power_of_two(std::int32_t n) { return std::bit_cast<float>((static_cast<std::uint32_t>(n) + 127) << 23); }

}  // namespace

float exponential(float x, float rest) {
  using E = ExponentialConstants;
  x = x < E::least ? E::least : x;
  x = x > E::most ? E::most : x;
  const float shifted = x * E::log2_e + E::to_integer;
  const float whole = shifted - E::to_integer;
  const float r = ((x - whole * E::ln2_high) - whole * E::ln2_low) + rest;
  float p = E::p[4];
  for (int i = 3; i >= 0; --i) p = p * r + E::p[i];
  const float e = 1 + (r + (r * r) * p);
  const auto n =
      static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(E::to_integer));
  const std::int32_t half = n >> 1;  // 2^n in two steps: a result may be subnormal, or infinite
  return e * power_of_two(half) * power_of_two(n - half);
}

Sigmoid sigmoid(float x) {
  const float e = exponential(-std::fabs(x));
  const float large = 1 / (1 + e), small = e / (1 + e);
  return x < 0 ? Sigmoid{small, large} : Sigmoid{large, small};
}

NormalCdfPdf normal(float x) {
  using N = NormalTailConstants;
  float a = std::fabs(x);
  a = a > N::most ? N::most : a;
  const float head = std::bit_cast<float>(std::bit_cast<std::uint32_t>(a) & N::head_bits);
  const float square = (head * head) * -0.5F, more = ((a - head) * (a + head)) * -0.5F;
  const float sum = square + more;
  const float e = exponential(sum, more - (sum - square));
  const float t = 1 / (1 + N::slope * a);
  float q = N::q[8];
  for (int i = 7; i >= 0; --i) q = q * t + N::q[i];
  const float tail = e * (q * t);
  return {x < 0 ? tail : 1 - tail, e * N::peak};
}

}  // namespace trellis::kernels
