// adamw in vectors.
#pragma once

#include <array>

#include "kernels/adamw.h"
#include "kernels/optimizer_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <Keep keep, DType gradient, DType moments>
void adamw(const Stretch& s) {
  constexpr bool random = keep == Keep::bf16_stochastic || moments == DType::bf16;
  constexpr int first = state_place(keep);
  constexpr Format moment = format_of(moments);
  const AdamWSettings& a = *static_cast<const AdamWSettings*>(s.settings);
  const F scale = f_all(a.scale), beta1 = f_all(a.beta1), rest1 = f_all(a.rest1), beta2 = f_all(a.beta2),
          rest2 = f_all(a.rest2), root = f_all(a.root), epsilon = f_all(a.epsilon), rate = f_all(a.rate),
          before = f_all(a.before), after = f_all(a.after);
  const Places to = places<first + 2>(s);
  const void* const gradients = s.reads[0];
  walk_optimizer<random, keep == Keep::f32_copy>(s, [=](auto streams) {
    return [=](std::ptrdiff_t at, auto which, Draw bits) __attribute__((always_inline)) {
      const F g = read<format_of(gradient)>(gradients, at, which) * scale;
      const F m = beta1 * read<moment>(to.at[first], at, which) + rest1 * g;
      const F v = beta2 * read<moment>(to.at[first + 1], at, which) + rest2 * (g * g);
      const F below = square_root(v) * root + epsilon;
      const F p = read_kept<keep>(to.at[values_place(keep)], to.at[1], at, which);
      const F kept = (p * before - rate * (m / below)) * after;
      write_kept<keep, decltype(streams)::value>(to, at, kept, bits.kept, which);
      write_state<moments>(to.at[first], at, m, bits.state[0], which);
      write_state<moments>(to.at[first + 1], at, v, bits.state[1], which);
    };
  });
}

constexpr DType narrow[] = {DType::f32, DType::bf16};

template <std::size_t i>
constexpr Twin twin() {
  constexpr auto keep = static_cast<Keep>(i / 4);
  constexpr DType gradient = narrow[i / 2 % 2], moments = narrow[i % 2];
  return {Name::of("adamw", name(keep), name(gradient), name(moments)), adamw<keep, gradient, moments>};
}

constexpr auto adamws = []<std::size_t... i>(std::index_sequence<i...>) { return std::array{twin<i>()...}; }
(std::make_index_sequence<keep_count * 4>{});

const Registered registered(this_isa, adamws);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
