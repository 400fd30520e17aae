#include "train/config/keys.h"

#include "train/config/key_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace trellis::train {
namespace {

std::string set_precision(JobConfig& c, const KeyValue& v) {
  const std::pair<const char*, Precision> known[] = {{"fp32", Precision::fp32},
                                                     {"bf16SR", Precision::bf16_sr},
                                                     {"bf16", Precision::bf16},
                                                     {"mixed_precision", Precision::mixed},
                                                     {"mixed_precisionSR", Precision::mixed_sr},
                                                     {"mixed_precision_SR", Precision::mixed_sr},
                                                     {"autocast", Precision::autocast}};
  for (const auto& [name, precision] : known)
    if (word(v) == name) return c.step.precision = precision, "";
  refuse(v, "fp32, bf16SR, bf16, mixed_precision, mixed_precisionSR or autocast; manual is said by one of these");
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

std::string set_cache(JobConfig& c, const KeyValue& v) {
  if (word(v).find("://") != std::string::npos) refuse(v, "a folder; object stores are out of scope");
  return c.experiment.cache = word(v), "";
}

std::string set_monitor(JobConfig& c, const KeyValue& v) {
  const std::pair<const char*, const char*> known[] = {{"global_step", "global_step"},
                                                       {"step", "global_step"},
                                                       {"loss", "loss"},
                                                       {"reduced_train_loss", "loss"},
                                                       {"val_loss", "val_loss"}};
  for (const auto& [said, meant] : known)
    if (word(v) == said) return c.experiment.monitor = meant, "";
  refuse(v, "global_step, loss or val_loss");
}

std::string set_mode(JobConfig& c, const KeyValue& v) {
  if (word(v) != "min" && word(v) != "max") refuse(v, "max or min, whichever is best");
  return c.experiment.mode = word(v), "";
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
      key("name", [](JobConfig& c) { return &c.step.name; }),
      only("model_source", {"hf", "megatron"}, "the names of keys of both are read"),
      {"seed", set_seed},
      key("trainer.devices", [](JobConfig& c) { return &c.trainer.devices; }),
      key("trainer.num_nodes", [](JobConfig& c) { return &c.trainer.num_nodes; }),
      key("trainer.max_steps", [](JobConfig& c) { return &c.trainer.max_steps; }),
      key("trainer.threads", [](JobConfig& c) { return &c.trainer.threads; }),
      idle("trainer.max_epochs", "trainer.max_steps decides; data begins anew when it ends"),
      key("trainer.log_every_n_steps", [](JobConfig& c) { return &c.trainer.log_every_n_steps; }),
      key("trainer.val_check_interval", [](JobConfig& c) { return &c.trainer.val_check_interval; }),
      key("trainer.limit_val_batches", [](JobConfig& c) { return &c.trainer.limit_val_batches; }),
      key("trainer.num_sanity_val_steps", [](JobConfig& c) { return &c.trainer.num_sanity_val_steps; }),
      {"trainer.gradient_clip_val", set_clip},
      idle("trainer.lnc", "ranks are processes of the host"),
      idle("trainer.sequential_move_factor", "parameters are made where they are used"),
      {"trainer.wiring", set_wiring},
  };
}

std::vector<Key> experiment_keys() {
  const auto k = [](const char* name, auto get) { return key(fmt::format("exp_manager.{}", name), get); };
  return {
      k("explicit_log_dir", [](JobConfig& c) { return &c.experiment.directory; }),
      k("exp_dir", [](JobConfig& c) { return &c.experiment.directory; }),
      k("create_tensorboard_logger", [](JobConfig& c) { return &c.experiment.tensorboard; }),
      k("resume_if_exists", [](JobConfig& c) { return &c.experiment.resume; }),
      k("resume_ignore_no_checkpoint", [](JobConfig& c) { return &c.experiment.resume_ignore_no_checkpoint; }),
      k("resume_from_checkpoint", [](JobConfig& c) { return &c.experiment.resume_from; }),
      k("create_checkpoint_callback", [](JobConfig& c) { return &c.experiment.checkpoints; }),
      k("checkpoint_callback_params.every_n_train_steps",
        [](JobConfig& c) { return &c.experiment.every_n_train_steps; }),
      k("checkpoint_callback_params.save_top_k", [](JobConfig& c) { return &c.experiment.save_top_k; }),
      {"exp_manager.checkpoint_callback_params.monitor", set_monitor},
      {"exp_manager.checkpoint_callback_params.mode", set_mode},
      k("checkpoint_callback_params.save_last", [](JobConfig& c) { return &c.experiment.save_last; }),
      idle("exp_manager.checkpoint_callback_params.filename", "a tag is named by its step"),
      absent("exp_manager.checkpoint_callback_params.train_time_interval",
             "checkpoints are counted in steps: every_n_train_steps"),
      k("checkpoint_callback_params.use_master_weights_in_ckpt", [](JobConfig& c) { return &c.experiment.masters; }),
      k("log_parameter_norm", [](JobConfig& c) { return &c.experiment.log_parameter_norm; }),
      k("log_gradient_norm", [](JobConfig& c) { return &c.experiment.log_gradient_norm; }),
      k("async_checkpointing", [](JobConfig& c) { return &c.experiment.asynchronous; }),
      idle("exp_manager.save_xser", "a checkpoint has one form"),
      idle("exp_manager.load_xser", "a checkpoint has one form"),
      idle("exp_manager.save_bf16", "parameters are saved in their own type"),
      idle("exp_manager.ckpt_ptl_version", "a checkpoint has one form"),
      idle("exp_manager.enable_recovery_time_instrumentation", "the log says how long loading took"),
  };
}

std::vector<Key> strategy_keys() {
  const auto k = [](const char* name, auto get) { return key(fmt::format("distributed_strategy.{}", name), get); };
  return {
      k("tensor_model_parallel_size", [](JobConfig& c) { return &c.step.strategy.tensor; }),
      k("pipeline_model_parallel_size", [](JobConfig& c) { return &c.step.strategy.pipeline; }),
      k("virtual_pipeline_model_parallel_size", [](JobConfig& c) { return &c.step.strategy.virtual_pipeline; }),
      k("context_parallel_size", [](JobConfig& c) { return &c.step.strategy.context; }),
      k("expert_model_parallel_size", [](JobConfig& c) { return &c.step.strategy.expert; }),
      k("zero1", [](JobConfig& c) { return &c.step.strategy.zero1; }),
      k("sequence_parallel", [](JobConfig& c) { return &c.step.strategy.sequence_parallel; }),
      k("kv_replicator", [](JobConfig& c) { return &c.step.strategy.kv_replicator; }),
      k("pipeline_schedule", [](JobConfig& c) { return &c.step.strategy.schedule; }),
      absent("distributed_strategy.token_shuffle_group_size",
             "tokens are shuffled among experts, and no model here has any"),
  };
}

std::vector<Key> data_keys() {
  const auto k = [](const char* name, auto get) { return key(fmt::format("data.{}", name), get); };
  return {
      k("micro_batch_size", [](JobConfig& c) { return &c.step.micro_batch_size; }),
      k("global_batch_size", [](JobConfig& c) { return &c.step.global_batch_size; }),
      k("seq_length", [](JobConfig& c) { return &c.step.seq_length; }),
      k("train_path", [](JobConfig& c) { return &c.data.train_path; }),
      k("train_dir", [](JobConfig& c) { return &c.data.train_path; }),
      k("data_prefix", [](JobConfig& c) { return &c.data.train_path; }),
      k("token_bytes", [](JobConfig& c) { return &c.data.token_bytes; }),
      k("special_tokens", [](JobConfig& c) { return &c.data.special_tokens; }),
      k("prefetch", [](JobConfig& c) { return &c.data.prefetch; }),
      k("val_path", [](JobConfig& c) { return &c.data.val_path; }),
      k("val_dir", [](JobConfig& c) { return &c.data.val_path; }),
      idle("data.splits_string", "all of the data is for training"),
      idle("data.num_workers", "batches are read ahead by one thread"),
      absent("data.tokenizer", "text is read as bytes, and token files as they are; tokenize before"),
      idle("data.packing", "samples are cut from one stream of tokens"),
  };
}

std::vector<Key> other_keys() {
  return {
      idle("model.activations_checkpoint_recompute", "the granularity decides"),
      idle("model.fusions.softmax", "softmax is one kernel"),
      idle("model.fusions.flash_attention", "attention's memory is linear in the sequence always"),
      absent("model.fusions.ring_attention", "context parallelism is not built"),
      idle("model.transpose_nki_inputs", "there are no NKI kernels"),
      {"precision.type", set_precision},
      absent("precision.xla_use_bf16", "precision.type says it: bf16SR or bf16"),
      absent("precision.xla_downcast_bf16", "precision.type says it: mixed_precision"),
      absent("precision.neuron_rt_stochastic_rounding_en", "precision.type says it: bf16SR or mixed_precisionSR"),
      only("precision.parallel_layers_reduce_dtype", {"fp32", "float32", "torch.float32"},
           "sums over the tensor axis are in fp32"),
      idle("compiler_flags", "nothing is compiled"),
      {"compiler_cache_url", set_cache},
      idle("aync_exec_max_inflight_requests", "steps are not queued"),
      key("bucket_size_collectives", [](JobConfig& c) { return &c.step.optimizer.bucket_mb; }),
      idle("neuron_rt_exec_timeout", "TRELLIS_TIMEOUT is the time that ranks wait for each other"),
      idle("neuron_experimental_compress_rg", "there are no replica groups"),
      only("model_alignment_strategy.sft.packing", {"true", "True"}, "records of .jsonl files are packed"),
      absent("model_alignment_strategy.dpo", "not built"),
      absent("model_alignment_strategy.orpo", "not built"),
      key("model_alignment_strategy.peft.lora_rank", [](JobConfig& c) { return &c.step.lora.rank; }),
      key("model_alignment_strategy.peft.lora_alpha", [](JobConfig& c) { return &c.step.lora.alpha; }),
      key("model_alignment_strategy.peft.target_modules", [](JobConfig& c) { return &c.step.lora.targets; }),
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
