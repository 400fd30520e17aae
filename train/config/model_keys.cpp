#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "text/refuse.h"
#include "train/config/config_key.h"
#include "train/config/hf/hf_config.h"
#include "train/config/optimizer_config.h"

namespace trellis::train {
namespace {

std::string set_model_config(JobConfig& c, const KeyValue& v) { return apply_hf_config(c, word(v)); }

std::string set_hf(JobConfig& c, const KeyValue& v) {
  c.experiment.hf = word(v);
  return apply_hf_config(c, c.experiment.hf);
}

std::string set_architecture(JobConfig& c, const KeyValue& v) {
  return c.step.model.architecture = c.words.architecture = word(v), "";
}

std::string set_bias(JobConfig& c, const KeyValue& v) {
  bool has = false;
  parse(v, has);
  return c.words.bias = text_of(has), "";
}

std::string set_scaling(JobConfig& c, const KeyValue& v) {
  for (const char* known : {"default", "linear", "dynamic", "llama3", "yarn", "longrope"})
    if (word(v) == known) return c.step.model.rope_scaling.type = known, "";
  refuse(v, "default, linear, dynamic, llama3, yarn or longrope; others are not built");
}

std::string set_recompute(JobConfig& c, const KeyValue& v) {
  if (word(v) == "selective") return c.step.recompute = Recompute::selective, "";
  if (word(v) == "full") return c.step.recompute = Recompute::full, "";
  if (word(v) == "null" || word(v) == "none") return c.step.recompute = Recompute::none, "";
  refuse(v, "selective, full or null");
}

std::string set_betas(JobConfig& c, const KeyValue& v) {
  if (v.words.size() != 2) refuse(v, "two numbers");
  c.step.optimizer.beta1 = decimal(v, v.words[0], from_below(0, 1));
  c.step.optimizer.beta2 = decimal(v, v.words[1], from_below(0, 1));
  return "";
}

// The names of update rules are checked where a step is laid out.
std::string set_optimizer(JobConfig& c, const KeyValue& v) {
  OptimizerConfig& o = c.step.optimizer;
  o.name = word(v);
  if (o.name == "lamb") o.epsilon = 1e-6;
  if (o.name == "adamw_fp32OptState") o.name = "adamw", o.decay_last = true, o.epsilon = 1e-6;
  return "";
}

std::string optimizer_text(const JobConfig& c) {
  return c.step.optimizer.decay_last ? c.step.optimizer.name + "_fp32OptState" : c.step.optimizer.name;
}

std::string betas_text(const JobConfig& c) {
  return fmt::format("{}, {}", c.step.optimizer.beta1, c.step.optimizer.beta2);
}

void check_betas(const JobConfig& c) {
  const AllowedRange range = from_below(0, 1);
  for (double beta : {c.step.optimizer.beta1, c.step.optimizer.beta2})
    if (const std::string expected = misfit(beta, range); !expected.empty())
      text::refuse("model.optim.betas has {}: expected {}", beta, expected);
}

std::string set_schedule(JobConfig& c, const KeyValue& v) {
  return c.step.schedule.name = rate_schedule_named(word(v)).name, "";
}

constexpr double most_layers = 4096;  // a pass through a layer takes some 45 KB where a step is laid out

// Keys of rotary positions for sequences longer than the model was made for.
std::vector<ConfigKey> rope_keys() {
  using enum ChangeOnResume;
  const auto k = [](const char* name, auto... rest) {
    return key(fmt::format("model.rope_scaling.{}", name), ChangeOnResume::model, std::move(rest)...);
  };
  return {
      {.name = "model.rope_scaling.rope_type",
       .apply = set_scaling,
       .resumed = model,
       .text = [](const JobConfig& c) { return c.step.model.rope_scaling.type; }},
      k("factor", at_least(1), [](auto& c) { return &c.step.model.rope_scaling.factor; }),
      k("low_freq_factor", above(0), [](auto& c) { return &c.step.model.rope_scaling.low_frequency; }),
      k("high_freq_factor", above(0), [](auto& c) { return &c.step.model.rope_scaling.high_frequency; }),
      k("original_max_position_embeddings", between(0, most_side),
        [](auto& c) { return &c.step.model.rope_scaling.original_positions; }),
      also("model.rope_scaling.type", "model.rope_scaling.rope_type"),
      k("beta_fast", above(0), [](auto& c) { return &c.step.model.rope_scaling.beta_fast; }),
      k("beta_slow", above(0), [](auto& c) { return &c.step.model.rope_scaling.beta_slow; }),
      k("attention_factor", at_least(0), [](auto& c) { return &c.step.model.rope_scaling.attention_factor; }),
      k("mscale", at_least(0), [](auto& c) { return &c.step.model.rope_scaling.mscale; }),
      k("mscale_all_dim", at_least(0), [](auto& c) { return &c.step.model.rope_scaling.mscale_all_dim; }),
      k("truncate", [](auto& c) { return &c.step.model.rope_scaling.truncate; }),
      k("short_factor", above(0), [](auto& c) { return &c.step.model.rope_scaling.short_factors; }),
      k("long_factor", above(0), [](auto& c) { return &c.step.model.rope_scaling.long_factors; }),
  };
}

// The keys of what the model is.
std::vector<ConfigKey> shape_keys() {
  using enum ChangeOnResume;
  const KeySection k{"model"};
  const AllowedRange side = between(1, most_side), side_or_none = between(0, most_side);
  return {
      {.name = "model.model_config", .apply = set_model_config, .turn = 0},
      {.name = "model.hf",
       .apply = set_hf,
       .resumed = said,
       .text = [](const JobConfig& c) { return c.experiment.hf; },
       .turn = 0},
      {.name = "model.architecture",
       .apply = set_architecture,
       .resumed = model,
       .text = [](const JobConfig& c) { return c.step.model.architecture; }},
      k("activation", silent, [](auto& c) { return &c.words.activation; }),
      k("normalization", silent, [](auto& c) { return &c.words.normalization; }),
      k("position_embedding_type", silent, [](auto& c) { return &c.words.positions; }),
      {.name = "model.has_bias", .apply = set_bias},
      k("sliding_window", model, side_or_none, [](auto& c) { return &c.step.model.sliding_window; }),
      also("model.sliding_window_size", "model.sliding_window"),
      k("head_dim", model, side_or_none, [](auto& c) { return &c.step.model.head_dim; }),
      also("model.kv_channels", "model.head_dim"),
      k("qkv_bias", model, [](auto& c) { return &c.step.model.qkv_bias; }),
      k("qk_norm", model, [](auto& c) { return &c.step.model.qk_norm; }),
      k("use_parallel_residual", model, [](auto& c) { return &c.step.model.parallel_residual; }),
      k("vocab_size", model, between(2, most_side), [](auto& c) { return &c.step.model.vocab_size; }),
      k("hidden_size", model, between(2, most_side), [](auto& c) { return &c.step.model.hidden_size; }),
      k("num_layers", model, between(1, most_layers), [](auto& c) { return &c.step.model.num_layers; }),
      also("model.num_hidden_layers", "model.num_layers"),
      k("num_attention_heads", model, side, [](auto& c) { return &c.step.model.num_attention_heads; }),
      k("num_key_value_heads", model, side_or_none, [](auto& c) { return &c.step.model.num_key_value_heads; }),
      also("model.num_kv_heads", "model.num_key_value_heads"),
      k("intermediate_size", model, side_or_none, [](auto& c) { return &c.step.model.intermediate_size; }),
      also("model.ffn_hidden_size", "model.intermediate_size"),
      k("max_position_embeddings", model, side, [](auto& c) { return &c.step.model.max_position_embeddings; }),
      k("rms_norm_eps", model, from_below(0, 1), [](auto& c) { return &c.step.model.norm_epsilon; }),
      also("model.layernorm_epsilon", "model.rms_norm_eps"),
      k("rope_theta", model, above(0), [](auto& c) { return &c.step.model.rope_theta; }),
      k("rotary_percentage", model, above_to(0, 1), [](auto& c) { return &c.step.model.rotary_percentage; }),
      k("initializer_range", silent, at_least(0), [](auto& c) { return &c.step.model.initializer_range; }),
      also("model.init_method_std", "model.initializer_range"),
      k("tie_word_embeddings", model, [](auto& c) { return &c.step.model.tie_word_embeddings; }),
      also("model.share_embeddings_and_output_weights", "model.tie_word_embeddings"),
  };
}

// The keys of how the model is trained.
std::vector<ConfigKey> course_keys() {
  using enum ChangeOnResume;
  const KeySection k{"model"};
  const AllowedRange share = from_below(0, 1);
  return {
      k("hidden_dropout", course, share, [](auto& c) { return &c.step.model.hidden_dropout; }),
      k("attention_dropout", course, share, [](auto& c) { return &c.step.model.attention_dropout; }),
      also("model.attention_probs_dropout_prob", "model.attention_dropout"),
      k("label_smoothing", course, share, [](auto& c) { return &c.step.model.label_smoothing; }),
      k("pipeline_cuts", said, between(0, most_layers - 1), [](auto& c) { return &c.step.strategy.cuts; }),
      {.name = "model.activations_checkpoint_granularity",
       .apply = set_recompute,
       .resumed = said,
       .text = [](const JobConfig& c) { return std::string(name(c.step.recompute)); }},
      k("activations_checkpoint_layers", said, between(0, most_layers - 1),
        [](auto& c) { return &c.step.recompute_layers; }),
      k("do_layer_norm_weight_decay", course, [](auto& c) { return &c.step.optimizer.norm_weight_decay; }),
      k("weight_init_only", silent, [](auto& c) { return &c.experiment.weights_only; }),
  };
}

}  // namespace

std::vector<ConfigKey> model_keys() {
  std::vector<ConfigKey> all = shape_keys();
  std::ranges::move(rope_keys(), std::back_inserter(all));
  std::ranges::move(course_keys(), std::back_inserter(all));
  return all;
}

std::vector<ConfigKey> optimizer_keys() {
  using enum ChangeOnResume;
  const KeySection k{"model.optim"};
  const AllowedRange steps = between(0, most_steps), rate = at_least(0);
  AllowedRange norm = above(0);
  norm.infinity = true;
  return {
      {.name = "model.optim.name", .apply = set_optimizer, .resumed = course, .text = optimizer_text, .turn = 1},
      k("lr", said, rate, [](auto& c) { return &c.step.optimizer.learning_rate; }),
      k("weight_decay", said, at_least(0), [](auto& c) { return &c.step.optimizer.weight_decay; }),
      k("eps", course, above_to(0, 1), [](auto& c) { return &c.step.optimizer.epsilon; }),
      {.name = "model.optim.betas", .apply = set_betas, .resumed = course, .text = betas_text, .check = check_betas},
      k("momentum", course, from_below(0, 1), [](auto& c) { return &c.step.optimizer.momentum; }),
      k("nesterov", course, [](auto& c) { return &c.step.optimizer.nesterov; }),
      {.name = "model.optim.sched.name",
       .apply = set_schedule,
       .resumed = said,
       .text = [](const JobConfig& c) { return c.step.schedule.name; }},
      k("sched.warmup_steps", said, steps, [](auto& c) { return &c.step.schedule.warmup_steps; }),
      k("sched.max_steps", said, steps, [](auto& c) { return &c.step.schedule.max_steps; }),
      k("sched.constant_steps", said, steps, [](auto& c) { return &c.step.schedule.constant_steps; }),
      k("sched.min_lr", said, rate, [](auto& c) { return &c.step.schedule.min_lr; }),
      k("norm_type", said, norm, [](auto& c) { return &c.step.optimizer.norm_type; }),
      k("use_fp32_grad_acc", said, [](auto& c) { return &c.step.optimizer.fp32_gradients; }),
  };
}

}  // namespace trellis::train
