// sgd in vectors.
#pragma once

#include <array>

#include "kernels/lanes/optimizer_step_lanes.h"
#include "kernels/optimizers/sgd.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <WeightStorage keep, DType gradient, bool plain, DType momentum>
void sgd(const KernelArguments& s) {
  const SgdSettings& a = *static_cast<const SgdSettings*>(s.settings);
  const F scale = f_all(a.scale), decay = f_all(a.decay), mu = f_all(a.momentum), rest = f_all(a.rest),
          rate = f_all(a.rate);
  const I nesterov = (I)u_all(a.nesterov ? ~0U : 0U);
  update_all<StepShape<keep, gradient, 1, momentum, plain ? 0 : 1>>(
      s, [=]<class V>(const StepElements<V>& e) __attribute__((always_inline)) {
        const V g = scale * e.read + decay * e.kept;
        if constexpr (plain) return StepElements<V>{e.kept - rate * g, {}, {}, {}, {}};
        const V m = mu * e.first + rest * g;
        return StepElements<V>{e.kept - rate * select(nesterov, g + mu * m, m), {}, {}, m, {}};
      });
}

constexpr DType narrow[] = {DType::f32, DType::bf16};
constexpr const char* states[] = {"none", "f32", "bf16"};

template <std::size_t i>
constexpr Twin twin() {
  constexpr auto keep = static_cast<WeightStorage>(i / 6);
  constexpr DType gradient = narrow[i / 3 % 2], momentum = i % 3 == 2 ? DType::bf16 : DType::f32;
  return {KernelName::of("sgd", name(keep), name(gradient), states[i % 3]), sgd<keep, gradient, i % 3 == 0, momentum>};
}

constexpr auto sgds = []<std::size_t... i>(std::index_sequence<i...>) { return std::array{twin<i>()...}; }
(std::make_index_sequence<keep_count * 6>{});

const Registered registered(this_isa, sgds);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
