// The keys of precision, of adapters, and of what has no counterpart here.
#include <fmt/format.h>

#include "train/config/config_key.h"

namespace trellis::train {
namespace {

constexpr double most_bucket_mb = 1 << 20;
constexpr double most_lora_rank = 1 << 16;

std::string set_precision(JobConfig& c, const KeyValue& v) {
  const std::pair<const char*, Precision> known[] = {{"fp32", Precision::fp32},
                                                     {"bf16SR", Precision::bf16_sr},
                                                     {"bf16", Precision::bf16},
                                                     {"mixed_precision", Precision::mixed},
                                                     {"mixed_precisionSR", Precision::mixed_sr},
                                                     {"mixed_precision_SR", Precision::mixed_sr},
                                                     {"autocast", Precision::autocast},
                                                     {"fp8", Precision::fp8},
                                                     {"mxfp8", Precision::mxfp8}};
  for (const auto& [name, precision] : known)
    if (word(v) == name) return c.step.precision = precision, "";
  refuse(
      v,
      "fp32, bf16SR, bf16, mixed_precision, mixed_precisionSR, autocast, fp8 or mxfp8; manual is said by one of these");
}

std::string set_cache(JobConfig& c, const KeyValue& v) {
  if (word(v).find("://") != std::string::npos) refuse(v, "a folder; object stores are out of scope");
  return c.experiment.cache = word(v), "";
}

// A fused projection of NxD stands for the projections that it joins.
std::string set_targets(JobConfig& c, const KeyValue& v) {
  std::vector<std::string>& to = c.step.lora.targets;
  to.clear();
  for (const std::string& w : v.words) {
    if (w == "qkv_proj")
      to.insert(to.end(), {"q_proj", "k_proj", "v_proj"});
    else if (w == "gate_up_proj")
      to.insert(to.end(), {"gate_proj", "up_proj"});
    else
      to.push_back(w);
  }
  return "";
}

std::string set_sums(JobConfig& c, const KeyValue& v) {
  const std::string& w = word(v);
  const bool narrow = w == "bf16" || w == "torch.bfloat16" || w == "bfloat16";
  if (!narrow && w != "fp32" && w != "torch.float32" && w != "float32") refuse(v, "fp32 or bf16");
  c.step.bf16_sums = narrow;
  return "";
}

// DPO and ORPO: such a run can be laid out and priced, as next-token prediction. Training it is refused, as losses over
// pairs of responses are not built.
std::string set_preference(JobConfig& c, const KeyValue& v) {
  c.trainer.untrained = v.key + ": losses over pairs of responses are not built";
  return fmt::format(
      "{} is laid out as next-token prediction, and not trained: losses over pairs of responses are not "
      "built",
      v.key);
}

std::string say_dropout(JobConfig&, const KeyValue& v) {
  return decimal(v, word(v), from_below(0, 1)) == 0 ? "" : v.key + " has no effect here: adapters drop nothing";
}

}  // namespace

std::vector<ConfigKey> other_keys() {
  using enum ChangeOnResume;
  const std::string peft = "model_alignment_strategy.peft.";
  return {
      idle("model.activations_checkpoint_recompute", "the granularity decides"),
      idle("model.fusions.softmax", "softmax is one kernel"),
      key("model.fusions.flash_attention", silent, [](auto& c) { return &c.step.flash_attention; }),
      key("model.fusions.ring_attention", said, [](auto& c) { return &c.step.strategy.ring_attention; }),
      idle("model.transpose_nki_inputs", "there are no NKI kernels"),
      {.name = "precision.type",
       .apply = set_precision,
       .resumed = said,
       .text = [](const JobConfig& c) { return std::string(name(c.step.precision)); }},
      {.name = "precision.parallel_layers_reduce_dtype",
       .apply = set_sums,
       .resumed = said,
       .text = [](const JobConfig& c) { return std::string(c.step.bf16_sums ? "bf16" : "fp32"); }},
      idle("compiler_flags", "nothing is compiled"),
      {.name = "compiler_cache_url", .apply = set_cache},
      idle("aync_exec_max_inflight_requests", "steps are not queued"),
      key("bucket_size_collectives", silent, between(0, most_bucket_mb),
          [](auto& c) { return &c.step.optimizer.bucket_mb; }),
      idle("neuron_rt_exec_timeout", "TRELLIS_TIMEOUT is the time that ranks wait for each other"),
      idle("neuron_experimental_compress_rg", "there are no replica groups"),
      also("model_alignment_strategy.sft.packing", "data.packing"),
      {.name = "model_alignment_strategy.dpo", .apply = set_preference},
      {.name = "model_alignment_strategy.orpo", .apply = set_preference},
      key(peft + "lora_rank", adapters, between(0, most_lora_rank), [](auto& c) { return &c.step.lora.rank; }),
      key(peft + "lora_alpha", adapters, above(0), [](auto& c) { return &c.step.lora.alpha; }),
      {.name = peft + "target_modules",
       .apply = set_targets,
       .resumed = course,
       .text = [](const JobConfig& c) { return text_of(c.step.lora.targets); }},
      {.name = peft + "lora_dropout", .apply = say_dropout},
      only(peft + "lora_bias", {"none"}, "biases stay as they are"),
      idle(peft + "lora_verbose", "`trellis train show` lists parameters by stage"),
  };
}

}  // namespace trellis::train
