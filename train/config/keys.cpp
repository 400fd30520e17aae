#include "train/config/keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "train/config/key_value.h"

namespace trellis::train {
namespace {

struct Key {
  std::string name;
  std::function<std::string(JobConfig&, const KeyValue&)> apply;
};

template <class Get>
Key key(std::string name, Get get) {
  return {std::move(name), [get](JobConfig& c, const KeyValue& v) {
            parse(v, get(c));
            return std::string();
          }};
}

// It is read, and makes no difference: a word on why.
Key idle(std::string name, std::string why) {
  return {name,
          [name, why](JobConfig&, const KeyValue&) { return fmt::format("{} has no effect here: {}", name, why); }};
}

// One value alone is served.
Key only(std::string name, std::vector<std::string> served, std::string why) {
  return {std::move(name), [served, why](JobConfig&, const KeyValue& v) -> std::string {
            if (std::ranges::find(served, word(v)) == served.end())
              refuse(v, fmt::format("{}; {}", fmt::join(served, " or "), why));
            return "";
          }};
}

// The whole section is refused.
Key absent(std::string name, std::string why) {
  return {name, [name, why](JobConfig&, const KeyValue&) -> std::string {
            throw std::invalid_argument(fmt::format("{}: {}", name, why));
          }};
}

std::string set_precision(JobConfig& c, const KeyValue& v) {
  const std::pair<const char*, Precision> known[] = {{"fp32", Precision::fp32},
                                                     {"bf16SR", Precision::bf16_sr},
                                                     {"bf16", Precision::bf16},
                                                     {"mixed_precision", Precision::mixed},
                                                     {"mixed_precisionSR", Precision::mixed_sr},
                                                     {"mixed_precision_SR", Precision::mixed_sr}};
  for (const auto& [name, precision] : known)
    if (word(v) == name) return c.step.precision = precision, "";
  refuse(v, "fp32, bf16SR, bf16, mixed_precision or mixed_precisionSR; autocast and manual are not built");
}

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

std::string set_clip(JobConfig& c, const KeyValue& v) {
  parse(v, c.step.optimizer.max_norm);
  c.step.optimizer.clip = c.step.optimizer.max_norm > 0;
  if (!c.step.optimizer.clip) c.step.optimizer.max_norm = 1;
  return "";
}

std::string set_seed(JobConfig& c, const KeyValue& v) {
  std::size_t seed = 0;
  parse(v, seed);
  c.step.seed = seed;
  return "";
}

std::string set_wiring(JobConfig& c, const KeyValue& v) {
  for (Wiring w : {Wiring::plain, Wiring::trn1, Wiring::logic2})
    if (word(v) == name(w)) return c.step.wiring = w, "";
  refuse(v, "plain, trn1 or logic2");
}

void add(std::vector<Key>& to, std::vector<Key> more) {
  for (Key& k : more) to.push_back(std::move(k));
}

std::vector<Key> trainer_keys() {
  return {
      key(
          "name", [](JobConfig & c) -> auto& { return c.step.name; }),
      only("model_source", {"hf", "megatron"}, "the names of keys of both are read"),
      {"seed", set_seed},
      key(
          "trainer.devices", [](JobConfig & c) -> auto& { return c.trainer.devices; }),
      key(
          "trainer.num_nodes", [](JobConfig & c) -> auto& { return c.trainer.num_nodes; }),
      key(
          "trainer.max_steps", [](JobConfig & c) -> auto& { return c.trainer.max_steps; }),
      key(
          "trainer.threads", [](JobConfig & c) -> auto& { return c.trainer.threads; }),
      idle("trainer.max_epochs", "trainer.max_steps decides; data begins anew when it ends"),
      key(
          "trainer.log_every_n_steps", [](JobConfig & c) -> auto& { return c.trainer.log_every_n_steps; }),
      idle("trainer.val_check_interval", "there is no validation loop"),
      idle("trainer.limit_val_batches", "there is no validation loop"),
      idle("trainer.num_sanity_val_steps", "there is no validation loop"),
      {"trainer.gradient_clip_val", set_clip},
      idle("trainer.lnc", "ranks are processes of the host"),
      idle("trainer.sequential_move_factor", "parameters are made where they are used"),
      {"trainer.wiring", set_wiring},
  };
}

std::vector<Key> experiment_keys() {
  const auto k = [](const char* name, auto get) { return key(std::string("exp_manager.") + name, get); };
  return {
      k(
          "explicit_log_dir", [](JobConfig & c) -> auto& { return c.experiment.directory; }),
      k(
          "exp_dir", [](JobConfig & c) -> auto& { return c.experiment.directory; }),
      k(
          "create_tensorboard_logger", [](JobConfig & c) -> auto& { return c.experiment.tensorboard; }),
      k(
          "resume_if_exists", [](JobConfig & c) -> auto& { return c.experiment.resume; }),
      k(
          "resume_ignore_no_checkpoint",
          [](JobConfig & c) -> auto& { return c.experiment.resume_ignore_no_checkpoint; }),
      k(
          "resume_from_checkpoint", [](JobConfig & c) -> auto& { return c.experiment.resume_from; }),
      k(
          "create_checkpoint_callback", [](JobConfig & c) -> auto& { return c.experiment.checkpoints; }),
      k(
          "checkpoint_callback_params.every_n_train_steps",
          [](JobConfig & c) -> auto& { return c.experiment.every_n_train_steps; }),
      k(
          "checkpoint_callback_params.save_top_k", [](JobConfig & c) -> auto& { return c.experiment.save_top_k; }),
      only("exp_manager.checkpoint_callback_params.monitor", {"global_step", "step"}, "the last ones are kept"),
      only("exp_manager.checkpoint_callback_params.mode", {"max"}, "the last ones are kept"),
      idle("exp_manager.checkpoint_callback_params.save_last", "the last step is always saved"),
      idle("exp_manager.checkpoint_callback_params.filename", "a tag is named by its step"),
      absent("exp_manager.checkpoint_callback_params.train_time_interval",
             "checkpoints are counted in steps: every_n_train_steps"),
      k(
          "checkpoint_callback_params.use_master_weights_in_ckpt",
          [](JobConfig & c) -> auto& { return c.experiment.masters; }),
      k(
          "log_parameter_norm", [](JobConfig & c) -> auto& { return c.experiment.log_parameter_norm; }),
      k(
          "log_gradient_norm", [](JobConfig & c) -> auto& { return c.experiment.log_gradient_norm; }),
      k(
          "async_checkpointing", [](JobConfig & c) -> auto& { return c.experiment.asynchronous; }),
      idle("exp_manager.save_xser", "a checkpoint has one form"),
      idle("exp_manager.load_xser", "a checkpoint has one form"),
      idle("exp_manager.save_bf16", "parameters are saved in their own type"),
      idle("exp_manager.ckpt_ptl_version", "a checkpoint has one form"),
      idle("exp_manager.enable_recovery_time_instrumentation", "the log says how long loading took"),
  };
}

std::vector<Key> strategy_keys() {
  const auto k = [](const char* name, auto get) { return key(std::string("distributed_strategy.") + name, get); };
  return {
      k(
          "tensor_model_parallel_size", [](JobConfig & c) -> auto& { return c.step.strategy.tensor; }),
      k(
          "pipeline_model_parallel_size", [](JobConfig & c) -> auto& { return c.step.strategy.pipeline; }),
      k(
          "virtual_pipeline_model_parallel_size",
          [](JobConfig & c) -> auto& { return c.step.strategy.virtual_pipeline; }),
      k(
          "context_parallel_size", [](JobConfig & c) -> auto& { return c.step.strategy.context; }),
      k(
          "expert_model_parallel_size", [](JobConfig & c) -> auto& { return c.step.strategy.expert; }),
      k(
          "zero1", [](JobConfig & c) -> auto& { return c.step.strategy.zero1; }),
      k(
          "sequence_parallel", [](JobConfig & c) -> auto& { return c.step.strategy.sequence_parallel; }),
      k(
          "kv_replicator", [](JobConfig & c) -> auto& { return c.step.strategy.kv_replicator; }),
      k(
          "pipeline_schedule", [](JobConfig & c) -> auto& { return c.step.strategy.schedule; }),
      absent("distributed_strategy.token_shuffle_group_size",
             "tokens are shuffled among experts, and no model here has any"),
  };
}

std::vector<Key> data_keys() {
  const auto k = [](const char* name, auto get) { return key(std::string("data.") + name, get); };
  return {
      k(
          "micro_batch_size", [](JobConfig & c) -> auto& { return c.step.micro_batch_size; }),
      k(
          "global_batch_size", [](JobConfig & c) -> auto& { return c.step.global_batch_size; }),
      k(
          "seq_length", [](JobConfig & c) -> auto& { return c.step.seq_length; }),
      k(
          "train_path", [](JobConfig & c) -> auto& { return c.data.train_path; }),
      k(
          "train_dir", [](JobConfig & c) -> auto& { return c.data.train_path; }),
      k(
          "data_prefix", [](JobConfig & c) -> auto& { return c.data.train_path; }),
      k(
          "token_bytes", [](JobConfig & c) -> auto& { return c.data.token_bytes; }),
      k(
          "prefetch", [](JobConfig & c) -> auto& { return c.data.prefetch; }),
      idle("data.val_path", "there is no validation loop"),
      idle("data.val_dir", "there is no validation loop"),
      idle("data.splits_string", "all of the data is for training"),
      idle("data.num_workers", "batches are read ahead by one thread"),
      absent("data.tokenizer", "text is read as bytes, and token files as they are; tokenize before"),
      idle("data.packing", "samples are cut from one stream of tokens"),
  };
}

std::vector<Key> model_keys() {
  const auto k = [](const char* name, auto get) { return key(std::string("model.") + name, get); };
  return {
      k(
          "architecture", [](JobConfig & c) -> auto& { return c.step.model.architecture; }),
      k(
          "vocab_size", [](JobConfig & c) -> auto& { return c.step.model.vocab_size; }),
      k(
          "hidden_size", [](JobConfig & c) -> auto& { return c.step.model.hidden_size; }),
      k(
          "num_layers", [](JobConfig & c) -> auto& { return c.step.model.num_layers; }),
      k(
          "num_hidden_layers", [](JobConfig & c) -> auto& { return c.step.model.num_layers; }),
      k(
          "num_attention_heads", [](JobConfig & c) -> auto& { return c.step.model.num_attention_heads; }),
      k(
          "num_key_value_heads", [](JobConfig & c) -> auto& { return c.step.model.num_key_value_heads; }),
      k(
          "num_kv_heads", [](JobConfig & c) -> auto& { return c.step.model.num_key_value_heads; }),
      k(
          "intermediate_size", [](JobConfig & c) -> auto& { return c.step.model.intermediate_size; }),
      k(
          "ffn_hidden_size", [](JobConfig & c) -> auto& { return c.step.model.intermediate_size; }),
      k(
          "max_position_embeddings", [](JobConfig & c) -> auto& { return c.step.model.max_position_embeddings; }),
      k(
          "rms_norm_eps", [](JobConfig & c) -> auto& { return c.step.model.norm_epsilon; }),
      k(
          "layernorm_epsilon", [](JobConfig & c) -> auto& { return c.step.model.norm_epsilon; }),
      k(
          "rope_theta", [](JobConfig & c) -> auto& { return c.step.model.rope_theta; }),
      k(
          "rotary_percentage", [](JobConfig & c) -> auto& { return c.step.model.rotary_percentage; }),
      k(
          "initializer_range", [](JobConfig & c) -> auto& { return c.step.model.initializer_range; }),
      k(
          "init_method_std", [](JobConfig & c) -> auto& { return c.step.model.initializer_range; }),
      k(
          "hidden_dropout", [](JobConfig & c) -> auto& { return c.step.model.hidden_dropout; }),
      k(
          "label_smoothing", [](JobConfig & c) -> auto& { return c.step.model.label_smoothing; }),
      k(
          "tie_word_embeddings", [](JobConfig & c) -> auto& { return c.step.model.tie_word_embeddings; }),
      k(
          "share_embeddings_and_output_weights",
          [](JobConfig & c) -> auto& { return c.step.model.tie_word_embeddings; }),
      k(
          "pipeline_cuts", [](JobConfig & c) -> auto& { return c.step.strategy.cuts; }),
      {"model.activations_checkpoint_granularity", set_recompute},
      k(
          "activations_checkpoint_layers", [](JobConfig & c) -> auto& { return c.step.recompute_layers; }),
      idle("model.activations_checkpoint_recompute", "the granularity decides"),
      idle("model.fusions.softmax", "softmax is one kernel"),
      idle("model.fusions.flash_attention", "attention's memory is linear in the sequence always"),
      absent("model.fusions.ring_attention", "context parallelism is not built"),
      idle("model.transpose_nki_inputs", "there are no NKI kernels"),
      k(
          "do_layer_norm_weight_decay", [](JobConfig & c) -> auto& { return c.step.optimizer.norm_weight_decay; }),
  };
}

std::string set_optimizer(JobConfig& c, const KeyValue& v) {
  const std::string& w = word(v);
  if (w == "adamw") return "";
  if (w == "adamw_fp32OptState") {
    c.step.optimizer.decay_last = true, c.step.optimizer.epsilon = 1e-6;
    return "";
  }
  refuse(v, "adamw or adamw_fp32OptState");
}

std::string set_schedule(JobConfig& c, const KeyValue& v) {
  const std::string& w = word(v);
  for (const char* known : {"constant", "LinearAnnealingWithWarmUp", "CosineAnnealing"})
    if (w == known) return c.step.schedule.name = w, "";
  refuse(v, "LinearAnnealingWithWarmUp, CosineAnnealing or constant");
}

std::vector<Key> optimizer_keys() {
  const auto k = [](const char* name, auto get) { return key(std::string("model.optim.") + name, get); };
  return {
      {"model.optim.name", set_optimizer},
      k(
          "lr", [](JobConfig & c) -> auto& { return c.step.optimizer.learning_rate; }),
      k(
          "weight_decay", [](JobConfig & c) -> auto& { return c.step.optimizer.weight_decay; }),
      k(
          "eps", [](JobConfig & c) -> auto& { return c.step.optimizer.epsilon; }),
      {"model.optim.betas", set_betas},
      {"model.optim.sched.name", set_schedule},
      k(
          "sched.warmup_steps", [](JobConfig & c) -> auto& { return c.step.schedule.warmup_steps; }),
      k(
          "sched.max_steps", [](JobConfig & c) -> auto& { return c.step.schedule.max_steps; }),
      k(
          "sched.constant_steps", [](JobConfig & c) -> auto& { return c.step.schedule.constant_steps; }),
      k(
          "sched.min_lr", [](JobConfig & c) -> auto& { return c.step.schedule.min_lr; }),
      k(
          "norm_type", [](JobConfig & c) -> auto& { return c.step.optimizer.norm_type; }),
      k(
          "use_fp32_grad_acc", [](JobConfig & c) -> auto& { return c.step.optimizer.fp32_gradients; }),
  };
}

std::vector<Key> other_keys() {
  return {
      {"precision.type", set_precision},
      absent("precision.xla_use_bf16", "precision.type says it: bf16SR or bf16"),
      absent("precision.xla_downcast_bf16", "precision.type says it: mixed_precision"),
      absent("precision.neuron_rt_stochastic_rounding_en", "precision.type says it: bf16SR or mixed_precisionSR"),
      only("precision.parallel_layers_reduce_dtype", {"fp32", "float32", "torch.float32"},
           "sums over the tensor axis are in fp32"),
      idle("compiler_flags", "nothing is compiled"),
      idle("compiler_cache_url", "nothing is compiled"),
      idle("aync_exec_max_inflight_requests", "steps are not queued"),
      key(
          "bucket_size_collectives", [](JobConfig & c) -> auto& { return c.step.optimizer.bucket_mb; }),
      idle("neuron_rt_exec_timeout", "TRELLIS_TIMEOUT is the time that ranks wait for each other"),
      idle("neuron_experimental_compress_rg", "there are no replica groups"),
      only("model_alignment_strategy.sft.packing", {"true", "True"}, "records of .jsonl files are packed"),
      absent("model_alignment_strategy.dpo", "not built"),
      absent("model_alignment_strategy.orpo", "not built"),
      key(
          "model_alignment_strategy.peft.lora_rank", [](JobConfig & c) -> auto& { return c.step.lora.rank; }),
      key(
          "model_alignment_strategy.peft.lora_alpha", [](JobConfig & c) -> auto& { return c.step.lora.alpha; }),
      key(
          "model_alignment_strategy.peft.target_modules", [](JobConfig & c) -> auto& { return c.step.lora.targets; }),
      only("model_alignment_strategy.peft.lora_dropout", {"0", "0.0"}, "adapters drop nothing"),
      only("model_alignment_strategy.peft.lora_bias", {"none"}, "biases stay as they are"),
      idle("model_alignment_strategy.peft.lora_verbose", "`trellis train show` lists parameters by stage"),
  };
}

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    std::vector<Key> made;
    add(made, trainer_keys()), add(made, experiment_keys()), add(made, strategy_keys()), add(made, data_keys());
    add(made, model_keys()), add(made, optimizer_keys()), add(made, other_keys());
    return made;
  }();
  return all;
}

}  // namespace

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const Key& k : keys()) names.push_back(k.name);
  return names;
}

bool is_section(std::string_view key) {
  return std::ranges::any_of(keys(), [&](const Key& k) {
    return k.name.size() > key.size() && k.name.starts_with(key) && k.name[key.size()] == '.';
  });
}

std::string apply(JobConfig& config, const KeyValue& value) {
  const auto found = std::ranges::find(keys(), value.key, &Key::name);
  if (found == keys().end()) throw std::invalid_argument(fmt::format("'{}' is no key", value.key));
  if (value.null) return "";
  return found->apply(config, value);
}

}  // namespace trellis::train
