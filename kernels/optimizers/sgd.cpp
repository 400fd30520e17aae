#include "kernels/optimizers/sgd.h"

#include <fmt/format.h>

#include <array>

#include "kernels/optimizers/update_call.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

template <WeightStorage keep, DType gradient, bool plain, DType momentum>
void sgd_truth(const KernelArguments& s) {
  const SgdSettings& a = *static_cast<const SgdSettings*>(s.settings);
  constexpr std::size_t state = state_operand(keep);
  for (std::size_t i = 0; i < s.n; ++i) {
    const float p =
        kept_at(keep, s.writes[values_operand(keep)], keep == WeightStorage::bf16_kahan ? s.writes[1] : nullptr, i);
    const float g = value_at(gradient, s.reads[0], i) * a.scale + a.decay * p;
    float direction = g;
    if constexpr (!plain) {
      const float m = a.momentum * value_at(momentum, s.writes[state], i) + a.rest * g;
      put_state(momentum, s, state, 0, i, m);
      direction = a.nesterov ? g + a.momentum * m : m;
    }
    keep_at(keep, s, i, p - a.rate * direction);
  }
}

SgdSettings settings_of(const Gradient& g, const SgdOptions& o) {
  const auto f32 = [](double value) { return static_cast<float>(value); };
  return {.random = state_keys(o.random),
          .scale = f32(g.scale),
          .decay = f32(o.weight_decay),
          .momentum = f32(o.momentum),
          .rest = f32(1 - o.dampening),
          .rate = f32(o.learning_rate),
          .nesterov = o.nesterov};
}

const SgdSettings& sample() {
  static const SgdSettings settings =
      settings_of({.scale = 0.75}, {.dampening = 0.1, .weight_decay = 0.01, .nesterov = true});
  return settings;
}

constexpr std::string_view state_names[] = {"none", "f32", "bf16"};
constexpr std::size_t state_count = std::size(state_names), count = keep_count * 2 * state_count;

std::string name_of(std::size_t i) {
  return fmt::format("sgd.{}.{}.{}", name(static_cast<WeightStorage>(i / state_count / 2)),
                     name(narrow_types[i / state_count % 2]), state_names[i % state_count]);
}

template <std::size_t i>
Kernel kernel() {
  constexpr auto keep = static_cast<WeightStorage>(i / state_count / 2);
  constexpr DType gradient = narrow_types[i / state_count % 2];
  constexpr bool plain = i % state_count == 0;
  static constexpr DType momentum = i % state_count == 2 ? DType::bf16 : DType::f32;
  return {.name = name_of(i),
          .reads = {gradient},
          .writes = written_types(keep, std::span(&momentum, plain ? 0 : 1)),
          .updates = true,
          .copies = keep == WeightStorage::f32_copy,
          .settings = &sample(),
          .truth = sgd_truth<keep, gradient, plain, momentum>};
}

template <std::size_t... i>
std::vector<Kernel> each(std::index_sequence<i...>) {
  return {kernel<i>()...};
}

const Registered sgds([] { return each(std::make_index_sequence<count>{}); });

void check(const SgdOptions& o, const void* momentum) {
  check_at_least_zero("sgd", "learning_rate", o.learning_rate);
  check_beta("sgd", "momentum", o.momentum);
  if (!(o.dampening >= 0 && o.dampening <= 1))
    text::refuse("sgd: dampening is {}; expected 0 <= dampening <= 1", o.dampening);
  check_at_least_zero("sgd", "weight_decay", o.weight_decay);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    text::refuse("sgd: nesterov with momentum {} and dampening {}; expected some and none", o.momentum, o.dampening);
  if (momentum == nullptr && o.dampening != 0) text::refuse("sgd: dampening is {} and momentum null", o.dampening);
}

}  // namespace

void sgd(const Weights& w, const Gradient& g, DType momentum_type, void* momentum, std::size_t n, const SgdOptions& o) {
  static const auto table = [] {
    std::array<const Kernel*, count> found{};
    for (std::size_t i = 0; i < count; ++i) found[i] = &kernel_named(name_of(i));
    return found;
  }();
  check(o, momentum);
  check_scale("sgd", g);
  const bool plain = momentum == nullptr && o.momentum == 0;
  const std::size_t state = plain ? 0 : 1 + narrow_index("sgd", "the momentum", momentum_type);
  const std::size_t row = keep_index("sgd", w.keep) * 2 + narrow_index("sgd", "the gradient", g.type);
  const SgdSettings settings = settings_of(g, o);
  const StateOperand one{"the momentum", momentum_type, momentum};
  run_update({"sgd",
              *table[row * state_count + state],
              w,
              g,
              {&one, plain ? std::size_t{0} : std::size_t{1}},
              n,
              o.random,
              o.threads,
              &settings});
}

}  // namespace trellis::kernels
