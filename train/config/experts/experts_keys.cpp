// The keys of models with experts, as NxD Training names them; those that it has no names for have Hugging Face's.
#include "train/config/config_key.h"

namespace trellis::train {
namespace {

constexpr double most_experts = 4096;

std::string set_score(JobConfig& c, const KeyValue& v) {
  for (RouterScore s : {RouterScore::softmax, RouterScore::sigmoid})
    if (word(v) == name(s)) return c.step.experts.score = s, "";
  refuse(v, "softmax or sigmoid");
}

// null: no limit, so that experts take all tokens that are sent to them.
std::string set_capacity(JobConfig& c, const KeyValue& v) {
  const bool none = word(v) == "null" || word(v) == "None";
  return c.step.experts.capacity_factor = none ? 0 : decimal(v, word(v), between(0, most_experts)), "";
}

std::string set_dropout(JobConfig&, const KeyValue& v) {
  if (decimal(v, word(v), from_below(0, 1)) > 0) refuse(v, "0; experts drop nothing, model.hidden_dropout does");
  return "";
}

}  // namespace

std::vector<ConfigKey> experts_keys() {
  using enum ChangeOnResume;
  const KeySection k{"model.moe"};
  const AllowedRange some = between(1, most_experts), none_or_some = between(0, most_experts);
  return {
      k("num_experts", model, none_or_some, [](auto& c) { return &c.step.experts.experts; }),
      k("top_k", model, some, [](auto& c) { return &c.step.experts.top_k; }),
      k("intermediate_size", model, between(0, most_side), [](auto& c) { return &c.step.experts.inner; }),
      also("model.moe.moe_intermediate_size", "model.moe.intermediate_size"),
      k("frequency", model, some, [](auto& c) { return &c.step.experts.frequency; }),
      k("first_k_dense_replace", model, none_or_some, [](auto& c) { return &c.step.experts.first_layer; }),
      k("n_shared_experts", model, none_or_some, [](auto& c) { return &c.step.experts.shared; }),
      {.name = "model.moe.capacity_factor",
       .apply = set_capacity,
       .resumed = course,
       .text = [](const JobConfig& c) { return text_of(c.step.experts.capacity_factor); }},
      k("dropless", course, [](auto& c) { return &c.step.experts.dropless; }),
      only("model.moe.routing_algorithm", {"top_k"}, "a token goes to its best experts"),
      {.name = "model.moe.router_activation",
       .apply = set_score,
       .resumed = model,
       .text = [](const JobConfig& c) { return std::string(name(c.step.experts.score)); }},
      k("normalize_top_k_affinities", model, [](auto& c) { return &c.step.experts.normalize; }),
      also("model.moe.norm_topk_prob", "model.moe.normalize_top_k_affinities"),
      k("routed_scaling_factor", model, above(0), [](auto& c) { return &c.step.experts.scale; }),
      k("n_group", model, some, [](auto& c) { return &c.step.experts.groups; }),
      k("topk_group", model, some, [](auto& c) { return &c.step.experts.top_groups; }),
      k("output_router_logits", course, [](auto& c) { return &c.step.experts.balanced; }),
      k("router_aux_loss_coef", course, at_least(0), [](auto& c) { return &c.step.experts.balance; }),
      k("expert_bias", model, [](auto& c) { return &c.step.experts.bias; }),
      k("bias_update_rate", course, at_least(0), [](auto& c) { return &c.step.experts.bias_rate; }),
      {.name = "model.moe.dropout", .apply = set_dropout},
      idle("model.moe.sinkhorn_iterations", "it is of another routing_algorithm"),
      idle("model.moe.sinkhorn_tol", "it is of another routing_algorithm"),
  };
}

}  // namespace trellis::train
