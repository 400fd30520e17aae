// What the twins of reduce have in common.
#pragma once

#include "kernels/float_lanes.h"
#include "kernels/reduce.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

TRELLIS_INLINE I ordered(F f) {  // integers in the order of the floats, -0 before +0
  const I i = (I)f;
  return i ^ (I)((U)(i >> 31) >> 1);
}

template <Reduction op>
TRELLIS_INLINE F joined(F a, F b) {
  if constexpr (op == Reduction::prod) return a * b;
  if constexpr (op == Reduction::min || op == Reduction::max) {
    const F picked = select(op == Reduction::min ? ordered(b) < ordered(a) : ordered(b) > ordered(a), b, a);
    return select((a != a) | (b != b), as_f(u_all(canonical_nan)), picked);
  }
  return a + b;
}

constexpr Reduction reduction(std::size_t i) { return static_cast<Reduction>(i % reduction_count); }

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
