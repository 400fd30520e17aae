// BERT for pre-training: norms after the residual sums, attention to both sides, learned positions and token types; the
// head has the masked words' loss, over the embedding's own weights, and that of whether the second part follows the
// first. Weights have the names of Hugging Face's BertForPreTraining.
#include <fmt/format.h>

#include <cmath>

#include "train/layers/cross_entropy.h"
#include "train/layers/embedding.h"
#include "train/layers/replicated_linear.h"
#include "train/models/ends.h"
#include "train/models/transformer_layer.h"

namespace trellis::train {
namespace {

constexpr const char* words = "bert.embeddings.word_embeddings";

class BertEmbedding : public Block {
 public:
  explicit BertEmbedding(const BlockContext& b)
      : embedding_(b.writer, b.parameters, options(b)),
        norm_(b.writer, b.parameters, Norm::Kind::layer, "bert.embeddings.LayerNorm", b.config.model.hidden_size,
              static_cast<float>(b.config.model.norm_epsilon), b.scattered()),
        drop_(b),
        types_(b.types) {}

  TensorId forward(Writer& w, TensorId tokens, std::size_t micro) override {
    const Writer::Scope scope(w, "embedding.forward");
    Kept& kept = kept_[micro];
    kept.tokens = tokens;
    const TensorId x = norm_.forward(w, embedding_.forward(w, tokens, types_.at(micro)), kept.norm);
    return drop_(w, "embedding_dropout", x, micro);
  }

  TensorId backward(Writer& w, TensorId dy, std::size_t micro) override {
    const Writer::Scope scope(w, "embedding.backward");
    const Kept kept = kept_.at(micro);
    kept_.erase(micro);
    const TensorId dx = norm_.backward(w, drop_(w, "embedding_dropout", dy, micro), kept.norm);
    embedding_.backward(w, dx, kept.tokens, types_.at(micro));
    return no_tensor;
  }

 private:
  static EmbeddingOptions options(const BlockContext& b) {
    EmbeddingOptions o = embedding_options(b, words, "bert.embeddings.position_embeddings");
    o.types = 2, o.type_name = "bert.embeddings.token_type_embeddings";
    return o;
  }
  struct Kept {
    TensorId tokens = no_tensor;
    Norm::Saved norm;
  };
  Embedding embedding_;
  Norm norm_;
  HiddenDropout drop_;
  std::vector<TensorId> types_;
  std::map<std::size_t, Kept> kept_;
};

TensorId hyperbolic_tangent(Writer& w, TensorId x) {
  const Tensor like = w.tensor(x);
  const TensorId y = w.tensor("tanh", like.type, like.rows, like.columns);
  w.compute("tanh", {x}, {y}, 8.0 * static_cast<double>(like.elements()), fused_over("gelu", like),
            [=, n = like.elements()](const Memory& at, const StepInputs&) {
              for (std::size_t i = 0; i < n; ++i) at.as<float>(y)[i] = std::tanh(at.as<float>(x)[i]);
            });
  return y;
}

TensorId hyperbolic_tangent_gradient(Writer& w, TensorId dy, TensorId y) {
  const Tensor like = w.tensor(y);
  const TensorId dx = w.tensor("dtanh", like.type, like.rows, like.columns);
  w.compute("tanh_gradient", {dy, y}, {dx}, 3.0 * static_cast<double>(like.elements()),
            fused_over("gelu_gradient", like), [=, n = like.elements()](const Memory& at, const StepInputs&) {
              const float *const g = at.as<float>(dy), *const v = at.as<float>(y);
              for (std::size_t i = 0; i < n; ++i) at.as<float>(dx)[i] = g[i] * (1 - v[i] * v[i]);
            });
  return dx;
}

// Predicts from the first token whether a sequence's second part follows the first. Every tensor rank computes all of
// it.
class NextSentence {
 public:
  explicit NextSentence(const BlockContext& b)
      : batch_(b.batch()),
        scattered_(b.scattered()),
        pooler_(b.writer, b.parameters, "bert.pooler.dense", b.config.model.hidden_size, b.config.model.hidden_size,
                b.config.model.initializer_range, false),
        choice_(b.writer, b.parameters, "cls.seq_relationship", b.config.model.hidden_size, 2,
                b.config.model.initializer_range, false),
        plan_{.classes = 2, .weight = 1.0 / static_cast<double>(b.micro_batches), .whole = true} {}

  struct Saved {
    TensorId x = no_tensor, pooled = no_tensor, narrow = no_tensor;
    LossSaved loss;
  };

  void forward(Writer& w, TensorId x, TensorId labels, TensorId loss, Saved& s) const {
    const Writer::Scope scope(w, "next_sentence");
    s.x = scattered_ ? gathered_rows(w, x) : x;
    s.pooled = hyperbolic_tangent(w, pooler_.forward(w, s.x, batch_, DType::f32));
    s.narrow = cast_to(w, "narrowed", s.pooled, w.tensor(x).type);
    cross_entropy(w, choice_.forward(w, s.narrow, batch_, DType::f32), labels, loss, plan_, s.loss);
  }

  // Adds its part to dx, where this rank has the rows of first tokens.
  void backward(Writer& w, TensorId dx, const Saved& s) const {
    const Writer::Scope scope(w, "next_sentence");
    const TensorId dpooled =
        cast_to(w, "widened", choice_.backward(w, cross_entropy_gradient(w, s.loss, plan_), s.narrow), DType::f32);
    const TensorId first = pooler_.backward(w, hyperbolic_tangent_gradient(w, dpooled, s.pooled), s.x);
    if (!scattered_ || w.place().tensor == 0) add_into(w, "add_first", first, dx);
  }

 private:
  std::size_t batch_;
  bool scattered_;
  ReplicatedLinear pooler_, choice_;
  LossOptions plan_;
};

class BertHead : public Block {
 public:
  explicit BertHead(const BlockContext& b)
      : type_(b.parameters.types().value),
        transform_(b.writer, b.parameters, "cls.predictions.transform.dense", b.config.model.hidden_size,
                   b.config.model.hidden_size, b.config.model.initializer_range, b.scattered()),
        norm_(b.writer, b.parameters, Norm::Kind::layer, "cls.predictions.transform.LayerNorm",
              b.config.model.hidden_size, static_cast<float>(b.config.model.norm_epsilon), b.scattered()),
        decoder_(b.writer, b.parameters, b.config.model.hidden_size,
                 {{.name = b.config.model.tie_word_embeddings ? words : "cls.predictions.decoder",
                   .outputs = b.config.model.vocab_size,
                   .part = uneven_part(b.config.model.vocab_size, b.writer),
                   .type = DType::f32,
                   .own_type = true,
                   .owner = b.first_stage || !b.config.model.tie_word_embeddings,
                   .bias_name = "cls.predictions.bias"}},
                 {.sequence = b.scattered(), .bias = true, .deviation = b.config.model.initializer_range}),
        plan_{.classes = b.config.model.vocab_size,
              .label_smoothing = b.config.model.label_smoothing,
              .weight = 1.0 / static_cast<double>(b.micro_batches)},
        next_(b),
        labels_(b.labels),
        next_labels_(b.next),
        loss_(b.loss) {}

  TensorId forward(Writer& w, TensorId x, std::size_t micro) override {
    const Writer::Scope scope(w, "head.forward");
    Kept& kept = kept_[micro];
    kept.x = x;
    kept.dense = transform_.forward(w, x, w.tensor(x).rows, w.tensor(x).type);
    kept.normed = norm_.forward(w, activated(w, "gelu", kept.dense, gelu), kept.norm);
    cross_entropy(w, decoder_.forward(w, kept.normed)[0], labels_.at(micro), loss_, plan_, kept.loss);
    next_.forward(w, x, next_labels_.at(micro), loss_, kept.next);
    return no_tensor;
  }

  TensorId backward(Writer& w, TensorId, std::size_t micro) override {
    const Writer::Scope scope(w, "head.backward");
    const Kept kept = kept_.at(micro);
    kept_.erase(micro);
    const TensorId dlogits = cast_to(w, "dlogits", cross_entropy_gradient(w, kept.loss, plan_), type_);
    const TensorId dgelu = norm_.backward(w, decoder_.backward(w, {dlogits}, kept.normed), kept.norm);
    const TensorId dx = transform_.backward(w, activation_gradient(w, "dgelu", dgelu, kept.dense, gelu), kept.x);
    next_.backward(w, dx, kept.next);
    return dx;
  }

 private:
  static constexpr kernels::Activation gelu = kernels::Activation::gelu_erf;
  struct Kept {
    TensorId x = no_tensor, dense = no_tensor, normed = no_tensor;
    Norm::Saved norm;
    LossSaved loss;
    NextSentence::Saved next;
  };
  DType type_;
  ReplicatedLinear transform_;
  Norm norm_;
  ColumnParallel decoder_;
  LossOptions plan_;
  NextSentence next_;
  std::vector<TensorId> labels_, next_labels_;
  TensorId loss_;
  std::map<std::size_t, Kept> kept_;
};

const RegisteredModel bert({
    .name = "bert",
    .embedding = [](const BlockContext& b) { return std::make_unique<BertEmbedding>(b); },
    .head = [](const BlockContext& b) { return std::make_unique<BertHead>(b); },
    .layer =
        [](const BlockContext& b, std::size_t layer) {
          TransformerOptions o = transformer_options(b, fmt::format("bert.encoder.layer.{}", layer), layer);
          o.norm = Norm::Kind::layer, o.arrangement = TransformerOptions::Arrangement::norms_last;
          o.norms[0] = "attention.output.LayerNorm", o.norms[1] = "output.LayerNorm";
          o.attention_name = "attention", o.mlp_name = "";
          o.attention.linear.bias = o.mlp.linear.bias = true;
          o.attention.causal = false, o.attention.rope.turned = 0;
          o.attention.names[0] = "self.query", o.attention.names[1] = "self.key";
          o.attention.names[2] = "self.value", o.attention.names[3] = "output.dense";
          o.attention.output_deviation = o.mlp.output_deviation = b.config.model.initializer_range;
          o.mlp.kind = MlpOptions::Kind::gelu, o.mlp.names = {"intermediate.dense", "output.dense"};
          return std::make_unique<TransformerLayer>(b, o);
        },
    .tied = "bert.embeddings.word_embeddings.weight",
    .pairs = true,
});

}  // namespace
}  // namespace trellis::train
