#include "kernels/optimizers/adamw.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "kernels/optimizers/update_call.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

template <WeightStorage keep, DType gradient, DType moments>
void adamw_truth(const KernelArguments& s) {
  const AdamWSettings& a = *static_cast<const AdamWSettings*>(s.settings);
  constexpr std::size_t first = state_operand(keep), second = first + 1;
  for (std::size_t i = 0; i < s.n; ++i) {
    const float g = value_at(gradient, s.reads[0], i) * a.scale;
    const float m = a.beta1 * value_at(moments, s.writes[first], i) + a.rest1 * g;
    const float v = a.beta2 * value_at(moments, s.writes[second], i) + a.rest2 * (g * g);
    const float below = std::sqrt(v) * a.root + a.epsilon;
    const float p =
        kept_at(keep, s.writes[values_operand(keep)], keep == WeightStorage::bf16_kahan ? s.writes[1] : nullptr, i);
    keep_at(keep, s, i, (p * a.before - a.rate * (m / below)) * a.after);
    put_state(moments, s, first, 0, i, m);
    put_state(moments, s, second, 1, i, v);
  }
}

AdamWSettings settings_of(const Gradient& g, const AdamWOptions& o) {
  const auto f32 = [](double value) { return static_cast<float>(value); };
  const double b1 = 1 - std::pow(o.beta1, static_cast<double>(o.step));
  const double root2 = std::sqrt(1 - std::pow(o.beta2, static_cast<double>(o.step)));
  const double kept = 1 - o.learning_rate * o.weight_decay;
  const bool first = o.order == AdamWDecayOrder::decay_first;
  return {.random = state_keys(o.random),
          .scale = f32(g.scale),
          .beta1 = f32(o.beta1),
          .rest1 = f32(1 - o.beta1),
          .beta2 = f32(o.beta2),
          .rest2 = f32(1 - o.beta2),
          .root = f32(first ? 1 / root2 : 1),
          .epsilon = f32(o.epsilon),
          .rate = f32(o.learning_rate / b1 * (first ? 1 : root2)),
          .before = f32(first ? kept : 1),
          .after = f32(first ? 1 : kept)};
}

const AdamWSettings& sample() {
  static const AdamWSettings settings = settings_of({.scale = 0.75}, {.step = 10});
  return settings;
}

constexpr std::size_t count = keep_count * 2 * 2;

template <std::size_t i>
Kernel kernel() {
  constexpr auto keep = static_cast<WeightStorage>(i / 4);
  constexpr DType gradient = narrow_types[i / 2 % 2], moments = narrow_types[i % 2];
  return {.name = fmt::format("adamw.{}.{}.{}", name(keep), name(gradient), name(moments)),
          .reads = {gradient},
          .writes = written_types(keep, std::array{moments, moments}),
          .updates = true,
          .copies = keep == WeightStorage::f32_copy,
          .settings = &sample(),
          .truth = adamw_truth<keep, gradient, moments>};
}

template <std::size_t... i>
std::vector<Kernel> each(std::index_sequence<i...>) {
  return {kernel<i>()...};
}

const Registered adamws([] { return each(std::make_index_sequence<count>{}); });

void check(const AdamWOptions& o) {
  check_at_least_zero("adamw", "learning_rate", o.learning_rate);
  check_beta("adamw", "beta1", o.beta1);
  check_beta("adamw", "beta2", o.beta2);
  check_at_least_zero("adamw", "epsilon", o.epsilon);
  check_at_least_zero("adamw", "weight_decay", o.weight_decay);
  if (o.step == 0) throw std::invalid_argument("adamw: step is 0; steps are counted from 1");
  if (o.order > AdamWDecayOrder::decay_last) text::refuse("adamw: no order has number {}", static_cast<int>(o.order));
}

}  // namespace

void adamw(const Weights& w, const Gradient& g, const Moments& m, std::size_t n, const AdamWOptions& o) {
  static const auto table = [] {
    std::array<const Kernel*, count> found{};
    for (std::size_t i = 0; i < count; ++i)
      found[i] = &kernel_named(fmt::format("adamw.{}.{}.{}", name(static_cast<WeightStorage>(i / 4)),
                                           name(narrow_types[i / 2 % 2]), name(narrow_types[i % 2])));
    return found;
  }();
  check(o);
  check_scale("adamw", g);
  const std::size_t index = keep_index("adamw", w.keep) * 4 + narrow_index("adamw", "the gradient", g.type) * 2 +
                            narrow_index("adamw", "the moments", m.type);
  const AdamWSettings settings = settings_of(g, o);
  check_settled("adamw", "learning_rate / (1 - beta1^step)", settings.rate);
  check_settled("adamw", "1 / sqrt(1 - beta2^step)", settings.root);
  check_settled("adamw", "learning_rate * weight_decay", settings.before * settings.after);
  const StateOperand states[] = {{"the first moments", m.type, m.first}, {"the second moments", m.type, m.second}};
  run_update({"adamw", *table[index], w, g, states, n, o.random, o.threads, &settings});
}

}  // namespace trellis::kernels
