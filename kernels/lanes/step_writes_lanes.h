// The results of an optimizer's step, two vectors at a time, and how they are written.
#pragma once

#include "kernels/lanes/step_reads_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// The new value of a parameter, in f32 (with bf16_kahan already rounded to bf16), and the rounding error, which
// bf16_kahan stores beside it; 0 for other storages.
template <LaneOrder order>
struct CompensatedParameter {
  VectorPair<order> value, left;
};
template <WeightStorage keep, LaneOrder order>
TRELLIS_INLINE CompensatedParameter<order> kept_of(VectorPair<order> value) {
  if constexpr (keep != WeightStorage::bf16_kahan) return {value, VectorPair<order>{}};
  const VectorPair<order> near = {as_f(as_u(to_nearest(value.first)) & upper),
                                  as_f(as_u(to_nearest(value.second)) & upper)};
  return {near, value - near};
}

// The new parameters and states of pair_lanes elements.
template <LaneOrder order>
struct StepResult {
  CompensatedParameter<order> kept;
  VectorPair<order> first, second;
};

// The lanes that need the slow path: the parameter is NaN or, with Kahan's rounding, infinite. A NaN in a state always
// makes the parameter NaN.
template <WeightStorage keep, LaneOrder order>
TRELLIS_INLINE Lanes hard_lanes(const CompensatedParameter<order>& k) {
  if constexpr (keep != WeightStorage::bf16_kahan) return nans_in(k.value.first, k.value.second);
  const F both = k.left.first + k.left.second;  // finite only if both are
  return nans_in(both - both, both - both);
}

TRELLIS_INLINE void put_two_numbers(void* array, std::ptrdiff_t at, Rows2 t) {
  put<false>(array, at, t.first, AllLanes{});
  put<false>(array, at + lanes, t.second, AllLanes{});
}
template <WeightStorage keep, bool streaming, LaneOrder order, class Random>
TRELLIS_INLINE void write_two_kept(const WrittenOperands& p, std::ptrdiff_t at, CompensatedParameter<order> k,
                                   const Random& random, int vector) {
  void* const to = p.at[values_place(keep)];
  if constexpr (keep <= WeightStorage::f32_copy) put_two_numbers(to, at, k.value);
  if constexpr (keep == WeightStorage::f32_copy)
    write_two<Rounding::nearest, streaming>(p.at[0], at, k.value, random, vector);
  if constexpr (keep == WeightStorage::bf16_nearest)
    write_two<Rounding::nearest, false>(to, at, k.value, random, vector);
  if constexpr (keep == WeightStorage::bf16_stochastic)
    write_two<Rounding::stochastic, false>(to, at, k.value, random, vector);
  if constexpr (keep == WeightStorage::bf16_kahan) {
    write_two<Rounding::truncate, false>(to, at, k.value, random, vector);
    write_two<Rounding::nearest, false>(p.at[1], at, k.left, random, vector);
  }
}
template <DType type, LaneOrder order, class Random>
TRELLIS_INLINE void write_two_states(void* array, std::ptrdiff_t at, VectorPair<order> values, const Random& random,
                                     int vector) {
  if constexpr (type == DType::bf16) {
    write_two<Rounding::stochastic, false>(array, at, values, random, vector);
  } else {
    put_two_numbers(array, at, values);
  }
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
