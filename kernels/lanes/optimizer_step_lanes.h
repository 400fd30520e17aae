// An optimizer's step over all elements of a call.
#pragma once

#include "kernels/lanes/pair_arithmetic_lanes.h"
#include "kernels/lanes/step_writes_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// The second half of a step that is not split in two: it changes nothing.
struct NoSecondHalf {
  template <class V>
  TRELLIS_INLINE StepElements<V> operator()(const StepElements<V>& e) const {
    return e;
  }
};

// The intermediate values of 64 elements between the two halves of a step.
template <LaneOrder order>
class StepIntermediates {
 public:
  TRELLIS_INLINE void put_two(std::ptrdiff_t i, const StepElements<VectorPair<order>>& e) {
    put_in(kept_, i, e.kept), put_in(other_, i, e.other), put_in(first_, i, e.first), put_in(second_, i, e.second);
  }
  TRELLIS_INLINE StepElements<VectorPair<order>> two(std::ptrdiff_t i) const {
    return {from(kept_, i), VectorPair<order>{}, from(other_, i), from(first_, i), from(second_, i)};
  }

 private:
  TRELLIS_INLINE static void put_in(float* array, std::ptrdiff_t i, VectorPair<order> t) {
    put<false>(array, i, t.first, AllLanes{});
    put<false>(array, i + lanes, t.second, AllLanes{});
  }
  TRELLIS_INLINE static VectorPair<order> from(const float* array, std::ptrdiff_t i) {
    return {load<F>(array, i, AllLanes{}), load<F>(array, i + lanes, AllLanes{})};
  }
  alignas(64) float kept_[64], other_[64], first_[64], second_[64];
};

// Takes the step for 32 elements: first computes all new values, so that the chains of arithmetic run side by side,
// then rounds and writes all. stepped(at) computes those of the pair_lanes elements from `at` on.
template <class Shape, LaneOrder order, bool streaming>
struct UnrolledStep {
  using Draws32 = OptimizerRandomStream<order, Shape::random_keep, Shape::random_state ? Shape::states : 0>;
  const StepOperands<Shape>& o;
  Draws32& draws;

  // Handles the 32 elements from `at` on. If some need the slow path, returns false and writes nothing.
  template <class Source, class... Done>
  [[nodiscard]] TRELLIS_INLINE bool run(std::ptrdiff_t at, const Source& stepped, const Done&... done) const {
    if constexpr (sizeof...(Done) * 2 < vectors_of_32) {
      const StepElements<VectorPair<order>> e = stepped(at + static_cast<std::ptrdiff_t>(sizeof...(Done)) * pair_lanes);
      return run(at, stepped, done..., StepResult<order>{kept_of<Shape::keep>(e.kept), e.first, e.second});
    } else {
      draws.next();
      if (any((hard_lanes<Shape::keep>(done.kept) | ...))) [[unlikely]]
        return false;
      int vector = 0;
      ((write(at + vector * lanes, done, vector), vector += 2), ...);
      return true;
    }
  }

 private:
  TRELLIS_INLINE void write(std::ptrdiff_t at, const StepResult<order>& done, int vector) const {
    write_two_kept<Shape::keep, streaming>(o.to, at, done.kept, draws.kept, vector);
    if constexpr (Shape::states > 0)
      write_two_states<Shape::state_type>(o.state(0), at, done.first, draws.first, vector);
    if constexpr (Shape::states > 1)
      write_two_states<Shape::state_type>(o.state(1), at, done.second, draws.second, vector);
  }
};

// Updates all elements: end(begin(elements)), for StepElements<V> of any V, gives parameter and state after the step.
// In a group of 64 elements begin runs for all before end runs for any: the chain with a root and a quotient is longer
// than a CPU's window, so chains would not overlap. begin passes all of StepElements but `read` to end.
template <class Shape, class Begin, class End = NoSecondHalf>
TRELLIS_INLINE void update_all(const KernelArguments& s, const Begin& begin, const End& end = {}) {
  constexpr WeightStorage keep = Shape::keep;
  const StepOperands<Shape> o(s);
  const auto step = [=](std::ptrdiff_t at, auto which, OptimizerBits bits) __attribute__((always_inline)) {
    const StepElements<F> e = end(begin(read_elements<Shape>(o, at, which)));
    write_kept<keep>(o.to, at, e.kept, bits.kept, which);
    if constexpr (Shape::states > 0) write_state<Shape::state_type>(o.state(0), at, e.first, bits.state[0], which);
    if constexpr (Shape::states > 1) write_state<Shape::state_type>(o.state(1), at, e.second, bits.state[1], which);
  };
  if constexpr (keep == WeightStorage::f32 && !Shape::random) return walk_from<4, NoOptimizerBits>(s, 0, step, step);
  using Source = std::conditional_t<Shape::random, OptimizerRandomBits, NoOptimizerBits>;
  constexpr LaneOrder order = Shape::pairs ? LaneOrder::pairs : LaneOrder::rows;
  typename UnrolledStep<Shape, order, false>::Draws32 draws(s);
  StepIntermediates<order> halfway;
  const auto make_block = [&](auto streams) {
    return [&](std::ptrdiff_t group) __attribute__((always_inline)) {
      const UnrolledStep<Shape, order, decltype(streams)::value> turn{o, draws};
      const auto begun = [&](std::ptrdiff_t at) __attribute__((always_inline)) {
        return begin(read_two_elements<Shape, order>(o, at));
      };
      const auto ended = [&](std::ptrdiff_t at) __attribute__((always_inline)) { return end(halfway.two(at - group)); };
      for (std::ptrdiff_t at = group; at < group + 64; at += 32) ask_ahead_for<Shape>(o, at);
      if constexpr (!std::is_same_v<End, NoSecondHalf>)
#pragma GCC unroll 4
        for (std::ptrdiff_t i = 0; i < 64; i += pair_lanes) halfway.put_two(i, begun(group + i));
#pragma GCC unroll 2
      for (std::ptrdiff_t at = group; at < group + 64; at += 32) {
        bool plain = false;
        if constexpr (std::is_same_v<End, NoSecondHalf>)
          plain = turn.run(at, begun);
        else
          plain = turn.run(at, ended);
        if (!plain) [[unlikely]]
          walk_range<4, Source>(s, at, at + 32, step);
      }
    };
  };
  const std::size_t size = keep == WeightStorage::f32_copy ? 2 : size_of(type_of(keep));
  walk_blocks<4, Shape::random, 64, Source>(s, size, make_block, step);
}

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
