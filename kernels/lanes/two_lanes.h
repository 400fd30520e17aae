// Arithmetic on two vectors as on one number, so that the chains of two steps run side by side.
#pragma once

#include "kernels/lanes/optimizer_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <Order order>
TRELLIS_INLINE Two<order> operator+(Two<order> a, Two<order> b) {
  return {a.first + b.first, a.second + b.second};
}
template <Order order>
TRELLIS_INLINE Two<order> operator-(Two<order> a, Two<order> b) {
  return {a.first - b.first, a.second - b.second};
}
template <Order order>
TRELLIS_INLINE Two<order> operator*(Two<order> a, Two<order> b) {
  return {a.first * b.first, a.second * b.second};
}
template <Order order>
TRELLIS_INLINE Two<order> operator/(Two<order> a, Two<order> b) {
  return {a.first / b.first, a.second / b.second};
}
template <Order order>
TRELLIS_INLINE Two<order> operator*(F a, Two<order> b) {
  return {a * b.first, a * b.second};
}
template <Order order>
TRELLIS_INLINE Two<order> operator+(Two<order> a, F b) {
  return {a.first + b, a.second + b};
}
template <Order order>
TRELLIS_INLINE Two<order> square_root(Two<order> t) {
  return {square_root(t.first), square_root(t.second)};
}
template <Order order>
TRELLIS_INLINE Two<order> select(I mask, Two<order> yes, Two<order> no) {
  return {select(mask, yes.first, no.first), select(mask, yes.second, no.second)};
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
