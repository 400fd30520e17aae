// adamw in vectors.
#pragma once

#include <array>

#include "kernels/lanes/optimizer_step_lanes.h"
#include "kernels/optimizers/adamw.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <WeightStorage keep, DType gradient, DType moments>
void adamw(const KernelArguments& s) {
  const AdamWSettings& a = *static_cast<const AdamWSettings*>(s.settings);
  const F scale = f_all(a.scale), beta1 = f_all(a.beta1), rest1 = f_all(a.rest1), beta2 = f_all(a.beta2),
          rest2 = f_all(a.rest2), root = f_all(a.root), epsilon = f_all(a.epsilon), rate = f_all(a.rate),
          before = f_all(a.before), after = f_all(a.after);
  const auto begin = [=]<class V>(const StepElements<V>& e) __attribute__((always_inline)) {
    const V g = scale * e.read;
    const V m = beta1 * e.first + rest1 * g;
    const V v = beta2 * e.second + rest2 * (g * g);
    return StepElements<V>{before * e.kept, {}, root * square_root(v) + epsilon, m, v};
  };
  const auto end = [=]<class V>(const StepElements<V>& e) __attribute__((always_inline)) {
    return StepElements<V>{after * (e.kept - rate * (e.first / e.other)), {}, {}, e.first, e.second};
  };
  update_all<StepShape<keep, gradient, 1, moments, 2>>(s, begin, end);
}

constexpr DType narrow[] = {DType::f32, DType::bf16};

template <std::size_t i>
constexpr Twin twin() {
  constexpr auto keep = static_cast<WeightStorage>(i / 4);
  constexpr DType gradient = narrow[i / 2 % 2], moments = narrow[i % 2];
  return {KernelName::of("adamw", name(keep), name(gradient), name(moments)), adamw<keep, gradient, moments>};
}

constexpr auto adamws = []<std::size_t... i>(std::index_sequence<i...>) { return std::array{twin<i>()...}; }
(std::make_index_sequence<keep_count * 4>{});

const Registered registered(this_isa, adamws);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
