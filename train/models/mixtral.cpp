// Llama's layers with a mixture of experts in place of perceptrons. mixtral, qwen3_moe: weights have the names of
// Hugging Face's MixtralForCausalLM and Qwen3MoeForCausalLM; the latter also norms queries and keys. deepseek_moe: the
// router and experts of DeepSeek-V3, with its names, behind Llama's attention.
#include <fmt/format.h>

#include "train/models/llama_family.h"
#include "train/models/transformer_layer.h"

namespace trellis::train {
namespace {

struct Family {
  const char *mixture, *gate, *up, *down;  // names of weights
  bool qk_norm = false;
};

std::unique_ptr<Block> layer(const BlockContext& b, std::size_t number, const Family& family) {
  const std::string name = fmt::format("model.layers.{}", number);
  TransformerOptions o = transformer_options(b, name, number);
  o.attention.qk_norm = family.qk_norm;
  o.experts = expert_options(b, number);
  if (o.experts) {
    o.mlp_name = family.mixture;
    o.experts->names[0] = family.gate, o.experts->names[1] = family.up, o.experts->names[2] = family.down;
    o.mlp.inner = b.config.experts.shared * o.experts->inner;
  }
  return std::make_unique<TransformerLayer>(b, o);
}

Model model(const char* name, const Family& family) {
  Model m = llama_ends(name);
  m.layer = [family](const BlockContext& b, std::size_t number) { return layer(b, number, family); };
  m.experts = true;
  return m;
}

const RegisteredModel mixtral(model("mixtral", {"block_sparse_moe", "w1", "w3", "w2"}));
const RegisteredModel qwen3_moe(model("qwen3_moe", {"mlp", "gate_proj", "up_proj", "down_proj", true}));
const RegisteredModel deepseek(model("deepseek_moe", {"mlp", "gate_proj", "up_proj", "down_proj"}));

}  // namespace
}  // namespace trellis::train
