#include "train/models/feed_forward.h"

#include <cmath>

namespace trellis::train {

FeedForward::FeedForward(Writer& w, Parameters& parameters, const std::string& name, const FeedForwardOptions& o) {
  if (o.experts) experts_.emplace(w, parameters, name, *o.experts);
  if (o.mlp) mlp_.emplace(w, parameters, o.experts ? name + "." + o.shared : name, *o.mlp);
}

TensorId FeedForward::forward(Writer& w, TensorId x, Saved& s) const {
  if (!experts_) return mlp_->forward(w, x, s.mlp);
  const TensorId y = experts_->forward(w, x, s.experts);
  if (!mlp_) return y;
  const Writer::Scope scope(w, "shared");
  return added(w, "sum", y, mlp_->forward(w, x, s.mlp));
}

TensorId FeedForward::backward(Writer& w, TensorId dy, const Saved& s) const {
  if (!experts_) return mlp_->backward(w, dy, s.mlp);
  const TensorId dx = experts_->backward(w, dy, s.experts);
  if (!mlp_) return dx;
  const Writer::Scope scope(w, "shared");
  return added(w, "sum", dx, mlp_->backward(w, dy, s.mlp));
}

void FeedForward::update(Writer& w) const {
  if (experts_) experts_->update(w);
}

std::optional<ExpertOptions> expert_options(const BlockContext& b, std::size_t layer) {
  const ExpertsConfig& e = b.config.experts;
  if (!e.layer_has(layer)) return {};
  const ModelConfig& m = b.config.model;
  std::size_t layers = 0;
  for (std::size_t i = 0; i < m.num_layers; ++i) layers += e.layer_has(i) ? 1 : 0;
  const bool trains = !b.parameters.types().none_trained;
  ExpertOptions o;
  o.rule = {.experts = e.experts,
            .top_k = e.top_k,
            .score = e.score,
            .normalize = e.normalize,
            .scale = e.scale,
            .groups = e.groups,
            .top_groups = e.top_groups};
  o.hidden = m.hidden_size, o.inner = e.inner == 0 ? m.inner() : e.inner;
  o.tokens = b.config.positions_here() * b.batch();
  o.capacity_factor = e.capacity();
  // The load-balancing loss is a mean over layers and micro-batches. Evaluation reports the loss of tokens alone.
  if (trains && e.balanced) {
    const auto parts = static_cast<std::size_t>(b.config.strategy.context);
    o.balance = e.balance / static_cast<double>(layers * b.micro_batches * parts);
  }
  o.bias = e.bias, o.bias_rate = trains ? e.bias_rate : 0;
  o.mean_gradients = !b.config.strategy.zero1;
  o.loss = b.loss;
  o.linear = {.sequence = b.scattered(),
              .deviation = m.initializer_range,
              .narrow = casts(b.config.precision),
              .bf16_sums = b.config.bf16_sums};
  o.output_deviation = m.initializer_range / std::sqrt(2.0 * static_cast<double>(m.num_layers));
  return o;
}

}  // namespace trellis::train
