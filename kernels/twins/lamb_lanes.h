// The kernels of lamb in vectors.
#pragma once

#include <array>

#include "kernels/lanes/f64_sums_lanes.h"
#include "kernels/lanes/optimizer_step_lanes.h"
#include "kernels/optimizers/lamb.h"

namespace trellis::kernels::TRELLIS_ISA {
namespace {

// The constants and the formula of the direction u (see LambSettings).
struct LambDirection {
  F unbias, root, epsilon, decay;
  TRELLIS_INLINE explicit LambDirection(const LambSettings& a)
      : unbias(f_all(a.unbias)), root(f_all(a.root)), epsilon(f_all(a.epsilon)), decay(f_all(a.decay)) {}
  template <class V>
  TRELLIS_INLINE V over(V m) const {
    return unbias * m;
  }
  template <class V>
  TRELLIS_INLINE V below(V v) const {
    return root * square_root(v) + epsilon;
  }
  TRELLIS_INLINE F of(F p, F m, F v) const { return over(m) / below(v) + decay * p; }
};

TRELLIS_INLINE const LambSettings& settings_in(const KernelArguments& s) {
  return *static_cast<const LambSettings*>(s.settings);
}

template <DType gradient>
void lamb_moments(const KernelArguments& s) {
  const LambSettings& a = settings_in(s);
  const F scale = f_all(a.scale), beta1 = f_all(a.beta1), rest1 = f_all(a.rest1), beta2 = f_all(a.beta2),
          rest2 = f_all(a.rest2);
  const WrittenOperands to = places<2>(s);
  const void* const gradients = s.reads[0];
  const auto step = [=](std::ptrdiff_t at, auto which, OptimizerBits) __attribute__((always_inline)) {
    const F g = read<format_of(gradient)>(gradients, at, which) * scale;
    const F m = beta1 * read<f32_format>(to.at[0], at, which) + rest1 * g;
    const F v = beta2 * read<f32_format>(to.at[1], at, which) + rest2 * (g * g);
    write_state<DType::f32>(to.at[0], at, m, U{}, which);
    write_state<DType::f32>(to.at[1], at, v, U{}, which);
  };
  walk_from<4, NoOptimizerBits>(s, 0, step, step);
}

template <WeightStorage keep>
void lamb_squares(const KernelArguments& s) {
  const LambDirection direction(settings_in(s));
  constexpr int first = keep == WeightStorage::bf16_kahan ? 2 : 1;
  const void* const values = s.reads[0];
  const void* const rest = s.reads[1];
  const void* const ms = s.reads[first];
  const void* const vs = s.reads[first + 1];
  sum_parts<2>(
      s, [=](std::ptrdiff_t at, auto which, int vector, F64PartialSums* sums) __attribute__((always_inline)) {
        if (vector == 0) {
          constexpr auto size = static_cast<std::ptrdiff_t>(size_of(type_of(keep)));
          ask_ahead<32 * size>(static_cast<const char*>(values) + at * size);
          if constexpr (keep == WeightStorage::bf16_kahan) ask_ahead<64>(static_cast<const char*>(rest) + at * 2);
          for (const void* state : {ms, vs}) ask_ahead<128>(static_cast<const char*>(state) + at * 4);
        }
        const F p = read_kept<keep>(values, rest, at, which);
        const F u = direction.of(p, read<f32_format>(ms, at, which), read<f32_format>(vs, at, which));
        const F64VectorPair wide_p = wide(p), wide_u = wide(only(u, which));
        sums[0].add(vector, wide_p, wide_p);
        sums[1].add(vector, wide_u, wide_u);
      });
}

template <WeightStorage keep>
void lamb_apply(const KernelArguments& s) {
  const LambDirection direction(settings_in(s));
  const F rate = f_all(settings_in(s).rate);
  const F decay = direction.decay;
  const auto begin = [=]<class V>(const StepElements<V>& e) __attribute__((always_inline)) {
    return StepElements<V>{e.kept, {}, direction.below(e.other), direction.over(e.read), {}};
  };
  const auto end = [=]<class V>(const StepElements<V>& e) __attribute__((always_inline)) {
    return StepElements<V>{e.kept - rate * (e.first / e.other + decay * e.kept), {}, {}, {}, {}};
  };
  update_all<StepShape<keep, DType::f32, 2, DType::f32, 0>>(s, begin, end);
}

constexpr std::array<Twin, 10> lambs = {{
    {KernelName::of("lamb", "moments", "f32"), lamb_moments<DType::f32>},
    {KernelName::of("lamb", "moments", "bf16"), lamb_moments<DType::bf16>},
    {KernelName::of("lamb", "squares", "f32"), lamb_squares<WeightStorage::f32>},
    {KernelName::of("lamb", "squares", "bf16_nearest"), lamb_squares<WeightStorage::bf16_nearest>},
    {KernelName::of("lamb", "squares", "bf16_kahan"), lamb_squares<WeightStorage::bf16_kahan>},
    {KernelName::of("lamb", "apply", "f32"), lamb_apply<WeightStorage::f32>},
    {KernelName::of("lamb", "apply", "f32_copy"), lamb_apply<WeightStorage::f32_copy>},
    {KernelName::of("lamb", "apply", "bf16_nearest"), lamb_apply<WeightStorage::bf16_nearest>},
    {KernelName::of("lamb", "apply", "bf16_stochastic"), lamb_apply<WeightStorage::bf16_stochastic>},
    {KernelName::of("lamb", "apply", "bf16_kahan"), lamb_apply<WeightStorage::bf16_kahan>},
}};

const Registered registered(this_isa, lambs);

}  // namespace
}  // namespace trellis::kernels::TRELLIS_ISA
