// Two models of the GPT family, with LayerNorm, biases and GELU. gpt_neox: rotary positions for a part of each head;
// attention and perceptron in parallel (parallel_residual) or one after the other. gpt3: learned positions; attention,
// then the perceptron.
#include <fmt/format.h>

#include "train/models/ends.h"
#include "train/models/transformer_layer.h"

namespace trellis::train {
namespace {

TransformerOptions gpt_options(const BlockContext& b, const std::string& name, std::size_t layer) {
  TransformerOptions o = transformer_options(b, name, layer);
  o.norm = Norm::Kind::layer;
  o.attention.linear.bias = o.mlp.linear.bias = true;
  o.attention.names[0] = "query", o.attention.names[1] = "key", o.attention.names[2] = "value";
  o.attention.names[3] = "dense";
  o.mlp.kind = MlpOptions::Kind::gelu;
  return o;
}

std::unique_ptr<Block> head(const BlockContext& b, const char* norm, const char* embedding, const char* own) {
  return std::make_unique<HeadBlock>(b, Norm::Kind::layer, norm, b.config.model.tie_word_embeddings ? embedding : own);
}

const RegisteredModel neox({
    .name = "gpt_neox",
    .embedding = [](const BlockContext& b) { return std::make_unique<EmbeddingBlock>(b, "gpt_neox.embed_in"); },
    .head =
        [](const BlockContext& b) { return head(b, "gpt_neox.final_layer_norm", "gpt_neox.embed_in", "embed_out"); },
    .layer =
        [](const BlockContext& b, std::size_t layer) {
          TransformerOptions o = gpt_options(b, fmt::format("gpt_neox.layers.{}", layer), layer);
          o.attention_name = "attention", o.arrangement = TransformerOptions::Arrangement::norms_first;
          if (b.config.model.parallel_residual) o.arrangement = TransformerOptions::Arrangement::beside;
          o.mlp.names = {"dense_h_to_4h", "dense_4h_to_h"};
          return std::make_unique<TransformerLayer>(b, o);
        },
    .tied = "gpt_neox.embed_in.weight",
});

const RegisteredModel gpt3({
    .name = "gpt3",
    .embedding = [](const BlockContext& b) { return std::make_unique<EmbeddingBlock>(b, "gpt.wte", "gpt.wpe"); },
    .head = [](const BlockContext& b) { return head(b, "gpt.norm_f", "gpt.wte", "lm_head"); },
    .layer =
        [](const BlockContext& b, std::size_t layer) {
          TransformerOptions o = gpt_options(b, fmt::format("gpt.h.{}", layer), layer);
          o.norms[0] = "norm_1", o.norms[1] = "norm_2", o.attention_name = "attn";
          o.attention.rope.turned = 0;
          o.mlp.activation = kernels::Activation::gelu_tanh;
          o.mlp.names = {"c_fc", "c_proj"};
          return std::make_unique<TransformerLayer>(b, o);
        },
    .tied = "gpt.wte.weight",
});

}  // namespace
}  // namespace trellis::train
