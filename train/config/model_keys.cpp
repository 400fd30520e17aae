#include "train/config/key_list.h"

#include <fmt/format.h>

namespace trellis::train {
namespace {

std::string set_recompute(JobConfig& c, const KeyValue& v) {
  if (word(v) == "selective") return c.step.recompute = Recompute::selective, "";
  if (word(v) == "full") return c.step.recompute = Recompute::full, "";
  if (word(v) == "null" || word(v) == "none") return c.step.recompute = Recompute::none, "";
  refuse(v, "selective, full or null");
}

std::string set_betas(JobConfig& c, const KeyValue& v) {
  if (v.words.size() != 2) refuse(v, "two numbers");
  c.step.optimizer.beta1 = decimal(v, v.words[0], "two numbers");
  c.step.optimizer.beta2 = decimal(v, v.words[1], "two numbers");
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

std::string set_schedule(JobConfig& c, const KeyValue& v) {
  const std::string& w = word(v);
  for (const char* known : {"constant", "LinearAnnealingWithWarmUp", "CosineAnnealing"})
    if (w == known) return c.step.schedule.name = w, "";
  refuse(v, "LinearAnnealingWithWarmUp, CosineAnnealing or constant");
}

}  // namespace

std::vector<Key> model_keys() {
  const auto k = [](const char* name, auto get) { return key(fmt::format("model.{}", name), get); };
  return {
      k("architecture", [](JobConfig& c) { return &c.step.model.architecture; }),
      k("vocab_size", [](JobConfig& c) { return &c.step.model.vocab_size; }),
      k("hidden_size", [](JobConfig& c) { return &c.step.model.hidden_size; }),
      k("num_layers", [](JobConfig& c) { return &c.step.model.num_layers; }),
      k("num_hidden_layers", [](JobConfig& c) { return &c.step.model.num_layers; }),
      k("num_attention_heads", [](JobConfig& c) { return &c.step.model.num_attention_heads; }),
      k("num_key_value_heads", [](JobConfig& c) { return &c.step.model.num_key_value_heads; }),
      k("num_kv_heads", [](JobConfig& c) { return &c.step.model.num_key_value_heads; }),
      k("intermediate_size", [](JobConfig& c) { return &c.step.model.intermediate_size; }),
      k("ffn_hidden_size", [](JobConfig& c) { return &c.step.model.intermediate_size; }),
      k("max_position_embeddings", [](JobConfig& c) { return &c.step.model.max_position_embeddings; }),
      k("rms_norm_eps", [](JobConfig& c) { return &c.step.model.norm_epsilon; }),
      k("layernorm_epsilon", [](JobConfig& c) { return &c.step.model.norm_epsilon; }),
      k("rope_theta", [](JobConfig& c) { return &c.step.model.rope_theta; }),
      k("rotary_percentage", [](JobConfig& c) { return &c.step.model.rotary_percentage; }),
      k("initializer_range", [](JobConfig& c) { return &c.step.model.initializer_range; }),
      k("init_method_std", [](JobConfig& c) { return &c.step.model.initializer_range; }),
      k("hidden_dropout", [](JobConfig& c) { return &c.step.model.hidden_dropout; }),
      k("attention_dropout", [](JobConfig& c) { return &c.step.model.attention_dropout; }),
      k("attention_probs_dropout_prob", [](JobConfig& c) { return &c.step.model.attention_dropout; }),
      k("label_smoothing", [](JobConfig& c) { return &c.step.model.label_smoothing; }),
      k("tie_word_embeddings", [](JobConfig& c) { return &c.step.model.tie_word_embeddings; }),
      k("share_embeddings_and_output_weights", [](JobConfig& c) { return &c.step.model.tie_word_embeddings; }),
      k("pipeline_cuts", [](JobConfig& c) { return &c.step.strategy.cuts; }),
      {"model.activations_checkpoint_granularity", set_recompute},
      k("activations_checkpoint_layers", [](JobConfig& c) { return &c.step.recompute_layers; }),
      k("do_layer_norm_weight_decay", [](JobConfig& c) { return &c.step.optimizer.norm_weight_decay; }),
  };
}

std::vector<Key> optimizer_keys() {
  const auto k = [](const char* name, auto get) { return key(fmt::format("model.optim.{}", name), get); };
  return {
      {"model.optim.name", set_optimizer},
      k("lr", [](JobConfig& c) { return &c.step.optimizer.learning_rate; }),
      k("weight_decay", [](JobConfig& c) { return &c.step.optimizer.weight_decay; }),
      k("eps", [](JobConfig& c) { return &c.step.optimizer.epsilon; }),
      {"model.optim.betas", set_betas},
      k("momentum", [](JobConfig& c) { return &c.step.optimizer.momentum; }),
      k("nesterov", [](JobConfig& c) { return &c.step.optimizer.nesterov; }),
      {"model.optim.sched.name", set_schedule},
      k("sched.warmup_steps", [](JobConfig& c) { return &c.step.schedule.warmup_steps; }),
      k("sched.max_steps", [](JobConfig& c) { return &c.step.schedule.max_steps; }),
      k("sched.constant_steps", [](JobConfig& c) { return &c.step.schedule.constant_steps; }),
      k("sched.min_lr", [](JobConfig& c) { return &c.step.schedule.min_lr; }),
      k("norm_type", [](JobConfig& c) { return &c.step.optimizer.norm_type; }),
      k("use_fp32_grad_acc", [](JobConfig& c) { return &c.step.optimizer.fp32_gradients; }),
  };
}

}  // namespace trellis::train
