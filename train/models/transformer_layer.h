// A transformer layer: attention and perceptron with their norms and residual sums, in one of three arrangements.
#pragma once

#include <map>

#include "train/layers/arithmetic.h"
#include "train/layers/attention.h"
#include "train/layers/norm.h"
#include "train/models/feed_forward.h"
#include "train/models/model_interface.h"

namespace trellis::train {

struct TransformerOptions {
  std::string name;  // "model.layers.3"
  Norm::Kind norm = Norm::Kind::rms;
  std::string norms[2] = {"input_layernorm", "post_attention_layernorm"};
  std::string attention_name = "self_attn", mlp_name = "mlp";
  AttentionOptions attention;
  MlpOptions mlp;                        // with experts: of the perceptron that all tokens go through; inner 0: none
  std::optional<ExpertOptions> experts;  // in place of the perceptron
  // norms_first: y = x + attention(norm(x)), then y + mlp(norm(y)). beside: x + attention(norm(x)) + mlp(norm'(x)).
  // norms_last: y = norm(x + attention(x)), then norm'(y + mlp(y)).
  enum class Arrangement : std::uint8_t { norms_first, beside, norms_last } arrangement = Arrangement::norms_first;
  bool recompute = false;  // keep x alone, and recompute the rest for the backward pass
};

// Dropout of hidden activations of one place in a model, the same however they are cut up.
class HiddenDropout {
 public:
  explicit HiddenDropout(const BlockContext&, std::string name = {});
  TensorId operator()(Writer&, const char* where, TensorId, std::size_t micro) const;

 private:
  std::string name_;
  double rate_;
  std::uint64_t seed_;
  std::size_t sequence_, batch_;
  bool scattered_;
};

// A micro-batch's number among those of all data-parallel ranks in the step.
std::size_t number_of(const Writer&, std::size_t micro);

// Sizes, names' prefixes and options that a layer takes from the configuration.
TransformerOptions transformer_options(const BlockContext&, const std::string& name, std::size_t layer);

class TransformerLayer : public Block {
 public:
  TransformerLayer(const BlockContext&, const TransformerOptions&);
  TensorId forward(Writer&, TensorId x, std::size_t micro) override;
  TensorId backward(Writer&, TensorId dy, std::size_t micro) override;
  void update(Writer& w) override { mlp_.update(w); }

 private:
  struct Saved {
    Norm::Saved norms[2];
    Attention::Saved attention;
    FeedForward::Saved mlp;
  };
  struct Kept {
    TensorId x = no_tensor;
    Saved saved;
  };
  TensorId through(Writer&, TensorId x, std::size_t micro, Saved&) const;
  TensorId through_norms_last(Writer&, TensorId x, std::size_t micro, Saved&) const;
  TensorId backward_norms_last(Writer&, TensorId dy, std::size_t micro, const Saved&) const;

  TransformerOptions options_;
  HiddenDropout drop_;
  std::vector<TensorId> starts_;  // with cut attention: by micro-batch
  Norm first_norm_;
  Attention attention_;
  Norm second_norm_;
  FeedForward mlp_;
  std::map<std::size_t, Kept> kept_;
};

}  // namespace trellis::train
