#include "train/config/hf/hf_families.h"

#include "text/refuse.h"

namespace trellis::train {
namespace {

using Fields = std::vector<HfField>;

const Fields common{{"vocab_size", "model.vocab_size"},
                    {"initializer_range", "model.initializer_range"},
                    {"tie_word_embeddings", "model.tie_word_embeddings"}};
const Fields wide{{"hidden_size", "model.hidden_size"},
                  {"num_hidden_layers", "model.num_layers"},
                  {"num_attention_heads", "model.num_attention_heads"},
                  {"intermediate_size", "model.intermediate_size"},
                  {"max_position_embeddings", "model.max_position_embeddings"}};
const Fields grouped{{"num_key_value_heads", "model.num_key_value_heads"},
                     {"rms_norm_eps", "model.rms_norm_eps"},
                     {"head_dim", "model.head_dim"},
                     {"attention_dropout", "model.attention_dropout"}};

Fields joined(std::initializer_list<Fields> lists) {
  Fields all;
  for (const Fields& each : lists) all.insert(all.end(), each.begin(), each.end());
  return all;
}

const HfSupportedValues silu{"hidden_act", {"silu"}, "the perceptron is SwiGLU"};
const HfSupportedValues without_bias{"attention_bias", {false}, "projections have no biases"};
const HfSupportedValues plain_mlp{"mlp_bias", {false}, "projections have no biases"};

HfFamily of_llama(const char* type, const char* class_name) {
  return {type, "llama", class_name, joined({common, wide, grouped}), {silu, without_bias, plain_mlp}, false, 1e-6};
}

HfFamily of_phi3() {
  HfFamily f = of_llama("phi3", "Phi3ForCausalLM");
  f.architecture = "phi3", f.epsilon = 1e-5;
  f.fields.push_back({"resid_pdrop", "model.hidden_dropout"});
  return f;
}

// A family like Llama's with experts in place of perceptrons. theirs: fields that families name differently, such as
// the number of experts.
HfFamily with_experts(const char* type, const char* class_name, Fields theirs) {
  HfFamily f = of_llama(type, class_name);
  f.architecture = type;
  f.fields = joined({f.fields,
                     theirs,
                     {{"num_experts_per_tok", "model.moe.top_k"},
                      {"output_router_logits", "model.moe.output_router_logits"},
                      {"router_aux_loss_coef", "model.moe.router_aux_loss_coef"}}});
  return f;
}

HfFamily of_mixtral() {
  HfFamily f = with_experts("mixtral", "MixtralForCausalLM", {{"num_local_experts", "model.moe.num_experts"}});
  f.epsilon = 1e-5;
  return f;
}

HfFamily of_qwen3_moe() {
  HfFamily f = with_experts("qwen3_moe", "Qwen3MoeForCausalLM",
                            {{"num_experts", "model.moe.num_experts"},
                             {"num_local_experts", "model.moe.num_experts"},  // since transformers 5
                             {"moe_intermediate_size", "model.moe.intermediate_size"},
                             {"norm_topk_prob", "model.moe.normalize_top_k_affinities"}});
  f.expected.push_back({"decoder_sparse_step", {1}, "all layers have experts"});
  f.expected.push_back({"mlp_only_layers", {nlohmann::json::array()}, "all layers have experts"});
  return f;
}

HfFamily of_neox() {
  return {"gpt_neox",
          "gpt_neox",
          "GPTNeoXForCausalLM",
          joined({common,
                  wide,
                  {{"layer_norm_eps", "model.layernorm_epsilon"},
                   {"rotary_pct", "model.rotary_percentage"},
                   {"rotary_emb_base", "model.rope_theta"},
                   {"use_parallel_residual", "model.use_parallel_residual"},
                   {"hidden_dropout", "model.hidden_dropout"},
                   {"attention_dropout", "model.attention_dropout"}}}),
          {{"hidden_act", {"gelu"}, "the perceptron's activation is GELU by erf"},
           {"attention_bias", {true}, "projections have biases"}},
          false,
          1e-5};
}

HfFamily of_gpt2() {
  return {"gpt2",
          "gpt3",
          "GPT2LMHeadModel",
          joined({common,
                  {{"n_embd", "model.hidden_size"},
                   {"n_layer", "model.num_layers"},
                   {"n_head", "model.num_attention_heads"},
                   {"n_inner", "model.intermediate_size"},
                   {"n_positions", "model.max_position_embeddings"},
                   {"layer_norm_epsilon", "model.layernorm_epsilon"},
                   {"resid_pdrop", "model.hidden_dropout"},
                   {"attn_pdrop", "model.attention_dropout"}}}),
          {{"activation_function", {"gelu_new", "gelu_pytorch_tanh"}, "the perceptron's activation is GELU by tanh"},
           {"scale_attn_weights", {true}, "scores are divided by the root of the head's size"},
           {"scale_attn_by_inverse_layer_idx", {false}, "scores are not divided by the layer's number"},
           {"add_cross_attention", {false}, "there is no encoder"}},
          true,
          1e-5};
}

HfFamily of_bert() {
  return {"bert",
          "bert",
          "BertForPreTraining",
          joined({common,
                  wide,
                  {{"layer_norm_eps", "model.layernorm_epsilon"},
                   {"hidden_dropout_prob", "model.hidden_dropout"},
                   {"attention_probs_dropout_prob", "model.attention_dropout"}}}),
          {{"hidden_act", {"gelu"}, "the perceptron's activation is GELU by erf"},
           {"position_embedding_type", {"absolute"}, "positions are learned"},
           {"type_vocab_size", {2}, "a sequence has two parts"},
           {"is_decoder", {false}, "attention sees both sides"}},
          true,
          1e-12};
}

}  // namespace

const std::vector<HfFamily>& hf_families() {
  static const std::vector<HfFamily> all{of_llama("llama", "LlamaForCausalLM"),
                                         of_llama("mistral", "MistralForCausalLM"),
                                         of_llama("qwen2", "Qwen2ForCausalLM"),
                                         of_llama("qwen3", "Qwen3ForCausalLM"),
                                         of_phi3(),
                                         of_mixtral(),
                                         of_qwen3_moe(),
                                         of_neox(),
                                         of_gpt2(),
                                         of_bert()};
  return all;
}

const HfFamily& hf_family_of(const StepConfig& c) {
  const ModelConfig& m = c.model;
  std::string type = m.architecture;
  if (type == "gpt3") type = "gpt2";
  if (type == "llama") type = m.qk_norm ? "qwen3" : m.qkv_bias ? "qwen2" : m.sliding_window > 0 ? "mistral" : "llama";
  for (const HfFamily& f : hf_families())
    if (f.type == type) return f;
  text::refuse("model.architecture is {}: Hugging Face's folders have no such model here", m.architecture);
}

}  // namespace trellis::train
