#include "train/config/canonical.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace trellis::train {
namespace {

// Each field is named here once, by a structured binding, so that this does not compile while a new field is missing.
std::string text(const RopeScaling& r) {
  const auto& [type, factor, low, high, positions, fast, slow, attention, mscale, mscale_all, truncate, shorts, longs] =
      r;
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", type, factor, low, high, positions, fast, slow,
                     attention, mscale, mscale_all, truncate, shorts, longs);
}

std::string text(const ModelConfig& m) {
  const auto& [architecture, vocabulary, hidden, layers, heads, kv_heads, inner, positions, epsilon, theta, rotary,
               deviation, hidden_dropout, attention_dropout, smoothing, tied, head, scaling, window, bias, norm,
               beside] = m;
  return fmt::format("model {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}\n", architecture,
                     vocabulary, hidden, layers, heads, kv_heads, inner, positions, epsilon, theta, rotary, deviation,
                     hidden_dropout, attention_dropout, smoothing, tied, head, text(scaling), window, bias, norm,
                     beside);
}

std::string text(const StrategyConfig& s) {
  const auto& [tensor, pipeline, virtual_pipeline, context, expert, sequence, zero1, kv, schedule, cuts, ring] = s;
  return fmt::format("strategy {} {} {} {} {} {} {} {} '{}' {} {}\n", tensor, pipeline, virtual_pipeline, context,
                     expert, sequence, zero1, kv, schedule, cuts, ring);
}

std::string text(const OptimizerConfig& o) {
  const auto& [name, rate, beta1, beta2, epsilon, decay, momentum, nesterov, last, norms, clip, most, type, fp32,
               bucket, group] = o;
  static_cast<void>(group);  // it does not change the step's layout
  return fmt::format("optimizer {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}\n", name, rate, beta1, beta2, epsilon,
                     decay, momentum, nesterov, last, norms, clip, most, type, fp32, bucket);
}

std::string text(const LoraConfig& l) {
  const auto& [rank, alpha, targets] = l;
  return fmt::format("lora {} {} {}\n", rank, alpha, targets);
}

std::string text(const ExpertsConfig& e) {
  const auto& [experts, top_k, inner, frequency, first, shared, capacity, dropless, score, normalize, scale, groups,
               top_groups, balanced, balance, bias, rate] = e;
  return fmt::format("experts {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}\n", experts, top_k, inner, frequency,
                     first, shared, capacity, dropless, train::name(score), normalize, scale, groups, top_groups,
                     balanced, balance, bias, rate);
}

}  // namespace

std::string canonical(const StepConfig& c, Rank world) {
  const auto& [name, seed, model, experts, strategy, optimizer, schedule, lora, precision, recompute, layers, micro,
               global, length, wiring, bf16_sums, flash, cut] = c;
  // The name and the learning rate's schedule change nothing of what is laid out, flash nothing of what runs here.
  static_cast<void>(name), static_cast<void>(schedule), static_cast<void>(flash);
  return fmt::format(
      "ranks {}\n{}{}{}{}{}precision {}\nrecompute {} {}\nbatch {} {} {}\nwiring {}\nsums {}\nseed {}\ncut {}\n", world,
      text(model), text(experts), text(strategy), text(optimizer), text(lora), train::name(precision),
      train::name(recompute), layers, micro, global, length, train::name(wiring), bf16_sums, seed, cut);
}

}  // namespace trellis::train
