#include "train/models/ends.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "train/layers/arithmetic.h"
#include "train/layers/cross_entropy.h"
#include "train/layers/embedding.h"
#include "train/layers/linear.h"

namespace trellis::train {

EmbeddingOptions embedding_options(const BlockContext& b, const std::string& name, const std::string& positions) {
  const ModelConfig& m = b.config.model;
  return {.vocabulary = m.vocab_size,
          .hidden = m.hidden_size,
          .sequence = b.config.seq_length,
          .batch = b.batch(),
          .positions = positions.empty() ? 0 : m.max_position_embeddings,
          .cached = b.cached,
          .scattered = b.scattered(),
          .deviation = m.initializer_range,
          .name = name,
          .position_name = positions};
}

struct EmbeddingBlock::Parts {
  Embedding embedding;
  std::map<std::size_t, TensorId> tokens = {};
};

EmbeddingBlock::EmbeddingBlock(const BlockContext& b, const std::string& name, const std::string& positions)
    : parts_(new Parts{Embedding(b.writer, b.parameters, embedding_options(b, name, positions))}) {}

EmbeddingBlock::~EmbeddingBlock() = default;

TensorId EmbeddingBlock::forward(Writer& w, TensorId tokens, std::size_t micro) {
  const Writer::Scope scope(w, "embedding.forward");
  parts_->tokens[micro] = tokens;
  return parts_->embedding.forward(w, tokens);
}

TensorId EmbeddingBlock::backward(Writer& w, TensorId dy, std::size_t micro) {
  const Writer::Scope scope(w, "embedding.backward");
  parts_->embedding.backward(w, dy, parts_->tokens.at(micro));
  return no_tensor;
}

class HeadBlock::Parts {
 public:
  Parts(const BlockContext&, Norm::Kind, const std::string& norm, const std::string& weight);
  TensorId forward(Writer&, TensorId x, std::size_t micro);
  TensorId backward(Writer&, std::size_t micro);

 private:
  struct Kept {
    Norm::Saved norm;
    TensorId normed = no_tensor;
    LossSaved loss;
  };
  void write_logits(Writer&, TensorId x) const;
  DType type_;
  Norm norm_;
  ColumnParallel projection_;
  LossOptions plan_;
  std::vector<TensorId> labels_, counted_;
  TensorId loss_;
  std::size_t batch_;
  TensorId logits_;  // no_tensor: the loss is computed instead
  std::map<std::size_t, Kept> kept_;
};

HeadBlock::Parts::Parts(const BlockContext& b, Norm::Kind kind, const std::string& norm, const std::string& weight)
    : type_(b.parameters.types().value),
      norm_(b.writer, b.parameters, kind, norm, b.config.model.hidden_size,
            static_cast<float>(b.config.model.norm_epsilon), b.scattered()),
      projection_(b.writer, b.parameters, b.config.model.hidden_size,
                  {{.name = weight,
                    .outputs = b.config.model.vocab_size,
                    .part = uneven_part(b.config.model.vocab_size, b.writer),
                    .type = DType::f32,
                    .own_type = true,
                    .owner = b.first_stage || !b.config.model.tie_word_embeddings}},
                  {.sequence = b.scattered(),
                   .deviation = b.config.model.initializer_range,
                   .narrow = casts(b.config.precision)}),
      plan_{.classes = b.config.model.vocab_size,
            .label_smoothing = b.config.model.label_smoothing,
            .weight = static_cast<double>(b.config.strategy.context) / static_cast<double>(b.micro_batches)},
      labels_(b.labels),
      counted_(b.counted),
      loss_(b.loss),
      batch_(b.batch()),
      logits_(b.logits) {}

// For generation: writes the logits of the token after each sequence's last one. No loss is computed.
void HeadBlock::Parts::write_logits(Writer& w, TensorId x) const {
  const Tensor all = w.tensor(x);
  const TensorId last = w.tensor("last", all.type, batch_, all.columns);
  w.compute(
      "last", {x}, {last}, 0, shape_over("copy", w.tensor(last)),
      [=, bytes = w.tensor(last).bytes(), skipped = all.bytes() - w.tensor(last).bytes()](
          const Memory& at, const StepInputs&) { std::memcpy(at.at(last), at.as<std::byte>(x) + skipped, bytes); });
  Norm::Saved saved;
  const TensorId part = projection_.forward(w, norm_.forward(w, last, saved))[0];
  const std::size_t first = uneven_part(plan_.classes, w).first;
  w.compute("whole", {part}, {logits_}, 0, shape_over("copy", w.tensor(logits_)),
            [=, rows = batch_, n = w.tensor(part).columns, classes = plan_.classes, to = logits_](const Memory& at,
                                                                                                  const StepInputs&) {
              std::fill_n(at.as<float>(to), rows * classes, 0.0F);
              for (std::size_t r = 0; r < rows; ++r)
                std::copy_n(at.as<float>(part) + r * n, n, at.as<float>(to) + r * classes + first);
            });
  if (w.shape().tensor > 1) w.all_reduce("sum", Axis::tensor, logits_);
}

TensorId HeadBlock::Parts::forward(Writer& w, TensorId x, std::size_t micro) {
  const Writer::Scope scope(w, "head.forward");
  if (logits_ != no_tensor) {
    write_logits(w, x);
    return no_tensor;
  }
  Kept& kept = kept_[micro];
  kept.normed = norm_.forward(w, x, kept.norm);
  const TensorId logits = projection_.forward(w, kept.normed)[0];
  if (!counted_.empty()) kept.loss.counted = counted_.at(micro);
  cross_entropy(w, logits, labels_.at(micro), loss_, plan_, kept.loss);
  return no_tensor;
}

TensorId HeadBlock::Parts::backward(Writer& w, std::size_t micro) {
  const Writer::Scope scope(w, "head.backward");
  const Kept kept = kept_.at(micro);
  kept_.erase(micro);
  const TensorId dlogits = cast_to(w, "dlogits", cross_entropy_gradient(w, kept.loss, plan_), type_);
  return norm_.backward(w, projection_.backward(w, {dlogits}, kept.normed), kept.norm);
}

HeadBlock::HeadBlock(const BlockContext& b, Norm::Kind kind, const std::string& norm, const std::string& weight)
    : parts_(std::make_unique<Parts>(b, kind, norm, weight)) {}

HeadBlock::~HeadBlock() = default;

TensorId HeadBlock::forward(Writer& w, TensorId x, std::size_t micro) { return parts_->forward(w, x, micro); }

TensorId HeadBlock::backward(Writer& w, TensorId, std::size_t micro) { return parts_->backward(w, micro); }

}  // namespace trellis::train
