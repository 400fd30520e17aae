// sgd in vectors.
#pragma once

#include <array>

#include "kernels/optimizer_lanes.h"
#include "kernels/sgd.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

template <Keep keep, DType gradient, bool plain, DType momentum>
void sgd(const Stretch& s) {
  constexpr bool random = keep == Keep::bf16_stochastic || (!plain && momentum == DType::bf16);
  constexpr int state = state_place(keep);
  const SgdSettings& a = *static_cast<const SgdSettings*>(s.settings);
  const F scale = f_all(a.scale), decay = f_all(a.decay), mu = f_all(a.momentum), rest = f_all(a.rest),
          rate = f_all(a.rate);
  const I nesterov = (I)u_all(a.nesterov ? ~0U : 0U);
  const Places to = places<state + (plain ? 0 : 1)>(s);
  const void* const gradients = s.reads[0];
  walk_optimizer<random, keep == Keep::f32_copy>(s, [=](auto streams) {
    return [=](std::ptrdiff_t at, auto which, Draw bits) __attribute__((always_inline)) {
      const F p = read_kept<keep>(to.at[values_place(keep)], to.at[1], at, which);
      const F g = read<format_of(gradient)>(gradients, at, which) * scale + decay * p;
      F direction = g;
      if constexpr (!plain) {
        const F m = mu * read<format_of(momentum)>(to.at[state], at, which) + rest * g;
        write_state<momentum>(to.at[state], at, m, bits.state[0], which);
        direction = select(nesterov, g + mu * m, m);
      }
      write_kept<keep, decltype(streams)::value>(to, at, p - rate * direction, bits.kept, which);
    };
  });
}

constexpr DType narrow[] = {DType::f32, DType::bf16};
constexpr const char* states[] = {"none", "f32", "bf16"};

template <std::size_t i>
constexpr Twin twin() {
  constexpr auto keep = static_cast<Keep>(i / 6);
  constexpr DType gradient = narrow[i / 3 % 2], momentum = i % 3 == 2 ? DType::bf16 : DType::f32;
  return {Name::of("sgd", name(keep), name(gradient), states[i % 3]), sgd<keep, gradient, i % 3 == 0, momentum>};
}

constexpr auto sgds = []<std::size_t... i>(std::index_sequence<i...>) { return std::array{twin<i>()...}; }
(std::make_index_sequence<keep_count * 6>{});

const Registered registered(this_isa, sgds);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
