// Llama 2 and 3: RMSNorm, grouped queries, rotary positions in halves, SwiGLU, no biases. Weights have the names of
// Hugging Face's LlamaForCausalLM.
#include <fmt/format.h>

#include "train/models/ends.h"
#include "train/models/transformer_layer.h"

namespace trellis::train {
namespace {

const RegisteredModel llama({
    .name = "llama",
    .embedding = [](const BlockContext& b) { return std::make_unique<EmbeddingBlock>(b, "model.embed_tokens"); },
    .head =
        [](const BlockContext& b) {
          return std::make_unique<HeadBlock>(b, Norm::Kind::rms, "model.norm",
                                             b.config.model.tie_word_embeddings ? "model.embed_tokens" : "lm_head");
        },
    .layer =
        [](const BlockContext& b, std::size_t layer) {
          const std::string name = fmt::format("model.layers.{}", layer);
          return std::make_unique<TransformerLayer>(b, transformer_options(b, name, layer));
        },
    .tied = "model.embed_tokens.weight",
});

}  // namespace
}  // namespace trellis::train
