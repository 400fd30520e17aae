// What an optimizer's step works on, and how it is read.
#pragma once

#include "kernels/lanes/optimizer_state_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// What an optimizer's step reads of each element: the parameter as it is kept, up to two numbers beside it, up to two
// of its state. V is F or two of them. No arrays: GCC would keep them in memory.
template <class V>
struct StepElements {
  V kept, read, other, first, second;
};

// The types of a kernel's operands.
template <WeightStorage keep_, DType read_, int reads_, DType state_, int states_>
struct StepShape {
  static constexpr WeightStorage keep = keep_;
  static constexpr Format read = format_of(read_), state = format_of(state_);
  static constexpr DType state_type = state_;
  static constexpr int reads = reads_, states = states_;
  static constexpr bool random_keep = keep_ == WeightStorage::bf16_stochastic;
  static constexpr bool random_state = states_ != 0 && state_ == DType::bf16;
  static constexpr bool random = random_keep || random_state;
  static constexpr bool pairs = keep_ > WeightStorage::f32_copy&& read_ == DType::bf16 &&
                                (states_ == 0 || random_state);
};

template <class Shape>
struct StepOperands {
  WrittenOperands to;
  const void* from[2];
  explicit StepOperands(const KernelArguments& s) : to(places<state_place(Shape::keep) + Shape::states>(s)), from{} {
    for (int k = 0; k < Shape::reads; ++k) from[k] = s.reads[k];
  }
  TRELLIS_INLINE void* values() const { return to.at[values_place(Shape::keep)]; }
  TRELLIS_INLINE void* state(int k) const { return to.at[state_place(Shape::keep) + k]; }
};

// Prefetches what the step will read for 32 elements.
template <class Shape>
TRELLIS_INLINE void ask_ahead_for(const StepOperands<Shape>& o, std::ptrdiff_t at) {
  const auto ask = [=](const void* array, auto size) __attribute__((always_inline)) {
    ask_ahead<32 * decltype(size)::value>(static_cast<const char*>(array) + at * decltype(size)::value);
  };
  constexpr std::integral_constant<int, Shape::read.bits() / 8> read_size;
  constexpr std::integral_constant<int, Shape::state.bits() / 8> state_size;
  if constexpr (Shape::reads > 0) ask(o.from[0], read_size);
  if constexpr (Shape::reads > 1) ask(o.from[1], read_size);
  if constexpr (Shape::states > 0) ask(o.state(0), state_size);
  if constexpr (Shape::states > 1) ask(o.state(1), state_size);
  ask(o.values(), std::integral_constant<int, static_cast<int>(size_of(type_of(Shape::keep)))>{});
  if constexpr (Shape::keep == WeightStorage::bf16_kahan) ask(o.to.at[1], std::integral_constant<int, 2>{});
}

template <class Shape, class Which>
TRELLIS_INLINE StepElements<F> read_elements(const StepOperands<Shape>& o, std::ptrdiff_t at, Which which) {
  StepElements<F> e{};
  if constexpr (Shape::reads > 0) e.read = read<Shape::read>(o.from[0], at, which);
  if constexpr (Shape::reads > 1) e.other = read<Shape::read>(o.from[1], at, which);
  if constexpr (Shape::states > 0) e.first = read<Shape::state>(o.state(0), at, which);
  if constexpr (Shape::states > 1) e.second = read<Shape::state>(o.state(1), at, which);
  e.kept = read_kept<Shape::keep>(o.values(), o.to.at[1], at, which);
  return e;
}
template <class Shape, LaneOrder order>
TRELLIS_INLINE StepElements<VectorPair<order>> read_two_elements(const StepOperands<Shape>& o, std::ptrdiff_t at) {
  StepElements<VectorPair<order>> e{};
  if constexpr (Shape::reads > 0) e.read = read_two<Shape::read, order>(o.from[0], at);
  if constexpr (Shape::reads > 1) e.other = read_two<Shape::read, order>(o.from[1], at);
  if constexpr (Shape::states > 0) e.first = read_two<Shape::state, order>(o.state(0), at);
  if constexpr (Shape::states > 1) e.second = read_two<Shape::state, order>(o.state(1), at);
  e.kept = read_two<format_of(type_of(Shape::keep)), order>(o.values(), at);
  if constexpr (Shape::keep == WeightStorage::bf16_kahan)
    e.kept = e.kept + read_two<bf16_format, order>(o.to.at[1], at);
  return e;
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
