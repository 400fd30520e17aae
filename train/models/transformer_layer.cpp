#include "train/models/transformer_layer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/types/fnv1a.h"

namespace trellis::train {

using Arrangement = TransformerOptions::Arrangement;

namespace {

Fp8Scaling fp8_scaling(Precision p) {
  return p == Precision::fp8 ? Fp8Scaling::tensor : p == Precision::mxfp8 ? Fp8Scaling::mx : Fp8Scaling::none;
}

}  // namespace

TransformerOptions transformer_options(const BlockContext& b, const std::string& name, std::size_t layer) {
  const ModelConfig& m = b.config.model;
  LinearOptions linear{.sequence = b.scattered(),
                       .deviation = m.initializer_range,
                       .narrow = casts(b.config.precision),
                       .fp8 = fp8_scaling(b.config.precision),
                       .bf16_sums = b.config.bf16_sums};
  const LoraConfig& lora = b.config.lora;
  if (lora.rank > 0)
    linear.adapters = {
        .rank = lora.rank, .scale = lora.alpha / static_cast<double>(lora.rank), .targets = lora.targets};
  // Projections onto the residual start with smaller values, because each layer has two of them.
  const double output = m.initializer_range / std::sqrt(2.0 * static_cast<double>(m.num_layers));
  TransformerOptions o;
  o.name = name;
  o.attention = {.hidden = m.hidden_size,
                 .heads = {m.num_attention_heads, m.kv_heads()},
                 .wiring = b.config.wiring,
                 .head_size = m.head_size(),
                 .sequence = b.config.seq_length,
                 .batch = b.batch(),
                 .rope = {m.turned(), m.rope_theta, m.rope_scaling, m.max_position_embeddings},
                 .window = m.sliding_window,
                 .norm_epsilon = static_cast<float>(m.norm_epsilon),
                 .linear = linear,
                 .output_deviation = output,
                 .dropout = m.attention_dropout,
                 .seed = b.config.seed,
                 .flash = b.config.flash_attention,
                 .ring = b.config.strategy.ring_attention,
                 .recompute_core = b.config.recompute == Recompute::selective,
                 .cached = b.cached};
  o.mlp = {.hidden = m.hidden_size, .inner = m.inner(), .linear = linear, .output_deviation = output};
  const auto& listed = b.config.recompute_layers;
  o.recompute =
      b.config.recompute == Recompute::full && (listed.empty() || std::ranges::find(listed, layer) != listed.end());
  return o;
}

TransformerLayer::TransformerLayer(const BlockContext& b, const TransformerOptions& o)
    : options_(o),
      drop_(b, o.name),
      starts_(o.attention.causal ? b.starts : std::vector<TensorId>()),
      first_norm_(b.writer, b.parameters, o.norm, o.name + "." + o.norms[0], o.attention.hidden,
                  static_cast<float>(b.config.model.norm_epsilon), b.scattered()),
      attention_(b.writer, b.parameters, o.name + "." + o.attention_name, o.attention),
      second_norm_(b.writer, b.parameters, o.norm, o.name + "." + o.norms[1], o.attention.hidden,
                   static_cast<float>(b.config.model.norm_epsilon), b.scattered()),
      mlp_(b.writer, b.parameters, o.mlp_name.empty() ? o.name : o.name + "." + o.mlp_name,
           {.mlp = o.experts && o.mlp.inner == 0 ? std::nullopt : std::optional(o.mlp), .experts = o.experts}) {}

std::size_t number_of(const Writer& w, std::size_t micro) {
  return micro * static_cast<std::size_t>(w.shape().data) + static_cast<std::size_t>(w.place().data);
}

HiddenDropout::HiddenDropout(const BlockContext& b, std::string name)
    : name_(std::move(name)),
      rate_(b.config.model.hidden_dropout),
      seed_(b.config.seed),
      sequence_(b.config.seq_length),
      batch_(b.batch()),
      scattered_(b.scattered()) {}

TensorId HiddenDropout::operator()(Writer& w, const char* where, TensorId t, std::size_t micro) const {
  const std::size_t row = scattered_ ? w.tensor(t).rows * static_cast<std::size_t>(w.place().tensor) : 0;
  return dropped(w, where, t,
                 {.rate = rate_,
                  .seed = seed_,
                  .site = kernels::fnv1a(name_ + where) + number_of(w, micro),
                  .row = row,
                  .part = sequence_part(sequence_, w.shape(), w.place()),
                  .batch = batch_});
}

TensorId TransformerLayer::through(Writer& w, TensorId x, std::size_t micro, Saved& s) const {
  s.attention.number = number_of(w, micro);
  if (!starts_.empty()) s.attention.starts = starts_[micro];
  if (options_.arrangement == Arrangement::norms_last) return through_norms_last(w, x, micro, s);
  const auto part = [&](const std::string& name, const Norm& norm, Norm::Saved& kept, TensorId in, const auto& layer,
                        auto& saved, const char* where) {
    const Writer::Scope scope(w, name);
    return drop_(w, where, layer.forward(w, norm.forward(w, in, kept), saved), micro);
  };
  const TensorId attended =
      part(options_.attention_name, first_norm_, s.norms[0], x, attention_, s.attention, "attention_dropout");
  const TensorId middle = added(w, "residual", x, attended);
  const TensorId inner = part(options_.mlp_name, second_norm_, s.norms[1],
                              options_.arrangement == Arrangement::beside ? x : middle, mlp_, s.mlp, "mlp_dropout");
  return added(w, "residual", middle, inner);
}

TensorId TransformerLayer::through_norms_last(Writer& w, TensorId x, std::size_t micro, Saved& s) const {
  const auto part = [&](const std::string& name, const Norm& norm, Norm::Saved& kept, TensorId in, const auto& layer,
                        auto& saved, const char* where) {
    const Writer::Scope scope(w, name.empty() ? "mlp" : name);
    return norm.forward(w, added(w, "residual", in, drop_(w, where, layer.forward(w, in, saved), micro)), kept);
  };
  const TensorId middle =
      part(options_.attention_name, first_norm_, s.norms[0], x, attention_, s.attention, "attention_dropout");
  return part(options_.mlp_name, second_norm_, s.norms[1], middle, mlp_, s.mlp, "mlp_dropout");
}

TensorId TransformerLayer::backward_norms_last(Writer& w, TensorId dy, std::size_t micro, const Saved& s) const {
  const auto part = [&](const std::string& name, const Norm& norm, const Norm::Saved& norms, TensorId grad,
                        const auto& layer, const auto& saved, const char* where) {
    const Writer::Scope scope(w, name.empty() ? "mlp" : name);
    const TensorId sum = norm.backward(w, grad, norms);
    return added(w, "residual", sum, layer.backward(w, drop_(w, where, sum, micro), saved));
  };
  const TensorId middle = part(options_.mlp_name, second_norm_, s.norms[1], dy, mlp_, s.mlp, "mlp_dropout");
  return part(options_.attention_name, first_norm_, s.norms[0], middle, attention_, s.attention, "attention_dropout");
}

TensorId TransformerLayer::forward(Writer& w, TensorId x, std::size_t micro) {
  const Writer::Scope scope(w, options_.name + ".forward");
  Kept& kept = kept_[micro];
  kept.x = x;
  return through(w, x, micro, kept.saved);
}

TensorId TransformerLayer::backward(Writer& w, TensorId dy, std::size_t micro) {
  Kept kept = kept_.at(micro);
  kept_.erase(micro);
  if (options_.recompute) {
    const Writer::Scope scope(w, options_.name + ".again");
    const Writer::For what(w, Phase::recompute);
    kept.saved = {};
    through(w, kept.x, micro, kept.saved);
  }
  const Saved& s = kept.saved;
  const Writer::Scope scope(w, options_.name + ".backward");
  if (options_.arrangement == Arrangement::norms_last) return backward_norms_last(w, dy, micro, s);
  const auto part = [&](const std::string& name, const Norm& norm, const Norm::Saved& norms, TensorId grad,
                        const auto& layer, const auto& saved, const char* where) {
    const Writer::Scope inside(w, name);
    return norm.backward(w, layer.backward(w, drop_(w, where, grad, micro), saved), norms);
  };
  const TensorId from_mlp = part(options_.mlp_name, second_norm_, s.norms[1], dy, mlp_, s.mlp, "mlp_dropout");
  const TensorId middle = options_.arrangement == Arrangement::beside ? dy : added(w, "residual", dy, from_mlp);
  const TensorId from_attention =
      part(options_.attention_name, first_norm_, s.norms[0], middle, attention_, s.attention, "attention_dropout");
  const TensorId dx = added(w, "residual", middle, from_attention);
  return options_.arrangement == Arrangement::beside ? added(w, "residual_mlp", dx, from_mlp) : dx;
}

}  // namespace trellis::train
