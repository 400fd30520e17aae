// adamw in vectors.
#pragma once

#include <array>

#include "kernels/adamw.h"
#include "kernels/optimizer_lanes.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

struct Updated {
  F kept, m, v;
};

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
  const auto updated = [=](std::ptrdiff_t at, auto which) __attribute__((always_inline)) {
    const F g = read<format_of(gradient)>(gradients, at, which) * scale;
    const F m = beta1 * read<moment>(to.at[first], at, which) + rest1 * g;
    const F v = beta2 * read<moment>(to.at[first + 1], at, which) + rest2 * (g * g);
    const F below = square_root(v) * root + epsilon;
    const F p = read_kept<keep>(to.at[values_place(keep)], to.at[1], at, which);
    return Updated{(p * before - rate * (m / below)) * after, m, v};
  };
  const auto make_step = [=](auto streams) {
    return [=](std::ptrdiff_t at, auto which, Draw bits) __attribute__((always_inline)) {
      const Updated u = updated(at, which);
      write_kept<keep, decltype(streams)::value>(to, at, u.kept, bits.kept, which);
      write_state<moments>(to.at[first], at, u.m, bits.state[0], which);
      write_state<moments>(to.at[first + 1], at, u.v, bits.state[1], which);
    };
  };
#if defined(__AVX512BW__)
  if constexpr (random && keep != Keep::f32_copy) {
    NextDraws draws(s);
    const auto make_block = [&](auto) {
      return [&](std::ptrdiff_t begin) __attribute__((always_inline)) {
        draws.next();
#pragma GCC unroll 2
        for (int i = 0; i < 2; ++i) {
          const std::ptrdiff_t at = begin + i * pair_lanes;
          const Updated low = updated(at, Full{}), high = updated(at + lanes, Full{});
          const Draw bits = draws.two_rows(i == 1);
          write_two_kept<keep>(to, at, low.kept, high.kept, bits.kept);
          write_two_states<moments>(to.at[first], at, low.m, high.m, bits.state[0]);
          write_two_states<moments>(to.at[first + 1], at, low.v, high.v, bits.state[1]);
        }
      };
    };
    return walk_blocks<4, true, 64, Draws>(s, size_of(type_of(keep)), make_block, make_step(std::false_type{}));
  }
#endif
  walk_optimizer<random, keep == Keep::f32_copy>(s, make_step);
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
