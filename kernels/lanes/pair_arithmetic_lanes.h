// Arithmetic on two vectors as on one number, so that the chains of two steps run side by side.
#pragma once

#include "kernels/lanes/optimizer_state_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <LaneOrder order>
TRELLIS_INLINE VectorPair<order> operator+(VectorPair<order> a, VectorPair<order> b) {
  return {a.first + b.first, a.second + b.second};
}
template <LaneOrder order>
TRELLIS_INLINE VectorPair<order> operator-(VectorPair<order> a, VectorPair<order> b) {
  return {a.first - b.first, a.second - b.second};
}
template <LaneOrder order>
TRELLIS_INLINE VectorPair<order> operator*(VectorPair<order> a, VectorPair<order> b) {
  return {a.first * b.first, a.second * b.second};
}
template <LaneOrder order>
TRELLIS_INLINE VectorPair<order> operator/(VectorPair<order> a, VectorPair<order> b) {
  return {a.first / b.first, a.second / b.second};
}
template <LaneOrder order>
TRELLIS_INLINE VectorPair<order> operator*(F a, VectorPair<order> b) {
  return {a * b.first, a * b.second};
}
template <LaneOrder order>
TRELLIS_INLINE VectorPair<order> operator+(VectorPair<order> a, F b) {
  return {a.first + b, a.second + b};
}
template <LaneOrder order>
TRELLIS_INLINE VectorPair<order> square_root(VectorPair<order> t) {
  return {square_root(t.first), square_root(t.second)};
}
template <LaneOrder order>
TRELLIS_INLINE VectorPair<order> select(I mask, VectorPair<order> yes, VectorPair<order> no) {
  return {select(mask, yes.first, no.first), select(mask, yes.second, no.second)};
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
