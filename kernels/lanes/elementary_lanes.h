// elementary.h in vectors.
#pragma once

#include "kernels/lanes/load_store_lanes.h"
#include "kernels/layers/elementary.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

TRELLIS_INLINE F size_of_lanes(F x) { return as_f(as_u(x) & 0x7FFF'FFFFU); }
TRELLIS_INLINE F at_most(F x, float most) { return select(x > most, f_all(most), x); }
TRELLIS_INLINE F at_least(F x, float least) { return select(x < least, f_all(least), x); }

TRELLIS_INLINE F exponential_lanes(F x, F rest) {
  using E = ExponentialConstants;
  x = at_most(at_least(x, E::least), E::most);
  const F shifted = x * E::log2_e + E::to_integer;
  const F whole = shifted - E::to_integer;
  const F r = ((x - whole * E::ln2_high) - whole * E::ln2_low) + rest;
  constexpr float c0 = E::p[0], c1 = E::p[1], c2 = E::p[2], c3 = E::p[3], c4 = E::p[4];
  const F p = (((c4 * r + c3) * r + c2) * r + c1) * r + c0;
  const F e = 1.0F + (r + (r * r) * p);
  const I n = (I)(as_u(shifted) - __builtin_bit_cast(std::uint32_t, E::to_integer));
  const I half = n >> 1;
  return e * as_f(((U)half + 127) << 23) * as_f(((U)(n - half) + 127) << 23);
}
TRELLIS_INLINE F exponential_lanes(F x) { return exponential_lanes(x, F{}); }

struct SigmoidLanes {
  F value, rest;
};
TRELLIS_INLINE SigmoidLanes sigmoid_lanes(F x) {
  const F e = exponential_lanes(as_f(as_u(x) | 0x8000'0000U));
  const F d = 1.0F + e;
  const I below = x < 0.0F;
  return {select(below, e, f_all(1)) / d, select(below, f_all(1), e) / d};
}

struct NormalCdfPdfLanes {
  F below, density;
};
TRELLIS_INLINE NormalCdfPdfLanes normal_lanes(F x) {
  using N = NormalTailConstants;
  const F a = at_most(size_of_lanes(x), N::most);
  const F head = as_f(as_u(a) & N::head_bits);
  const F square = (head * head) * -0.5F, more = ((a - head) * (a + head)) * -0.5F;
  const F sum = square + more;
  const F e = exponential_lanes(sum, more - (sum - square));
  const F t = 1.0F / (1.0F + N::slope * a);
  constexpr auto q = N::q;
  constexpr float q0 = q[0], q1 = q[1], q2 = q[2], q3 = q[3], q4 = q[4], q5 = q[5], q6 = q[6], q7 = q[7], q8 = q[8];
  const F high = ((q8 * t + q7) * t + q6) * t + q5;
  const F tail = e * (((((((high * t + q4) * t + q3) * t + q2) * t + q1) * t + q0)) * t);
  return {select(x < 0.0F, tail, 1.0F - tail), e * N::peak};
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
