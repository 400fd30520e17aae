// Llama 2 and 3, Mistral, Qwen 2 (qkv_bias) and 3 (qk_norm): RMSNorm, grouped queries, rotary positions in halves,
// SwiGLU, no other biases. Weights have the names of Hugging Face's LlamaForCausalLM and its kin. Phi-3 is the same,
// but Hugging Face's files fuse its weights, and rotary positions may turn only a part of each head.
#include "train/models/llama_family.h"

#include <fmt/format.h>

#include <utility>

#include "train/models/ends.h"
#include "train/models/transformer_layer.h"

namespace trellis::train {

Model llama_ends(std::string name) {
  return {.name = std::move(name),
          .embedding = [](const BlockContext& b) { return std::make_unique<EmbeddingBlock>(b, "model.embed_tokens"); },
          .head =
              [](const BlockContext& b) {
                return std::make_unique<HeadBlock>(
                    b, Norm::Kind::rms, "model.norm",
                    b.config.model.tie_word_embeddings ? "model.embed_tokens" : "lm_head");
              },
          .layer = {},
          .tied = "model.embed_tokens.weight"};
}

namespace {

Model model(const char* name) {
  Model m = llama_ends(name);
  m.layer = [](const BlockContext& b, std::size_t layer) {
    TransformerOptions o = transformer_options(b, fmt::format("model.layers.{}", layer), layer);
    o.attention.qkv_bias = b.config.model.qkv_bias, o.attention.qk_norm = b.config.model.qk_norm;
    return std::make_unique<TransformerLayer>(b, o);
  };
  return m;
}

const RegisteredModel llama(model("llama")), phi3(model("phi3"));

}  // namespace
}  // namespace trellis::train
