// A pre-norm transformer layer: x + attention(norm(x)), then that + mlp(norm(that)); or both beside each other.
#pragma once

#include <map>

#include "train/layers/arithmetic.h"
#include "train/layers/attention.h"
#include "train/layers/mlp.h"
#include "train/layers/norm.h"
#include "train/models/block.h"

namespace trellis::train {

struct TransformerOptions {
  std::string name;  // "model.layers.3"
  Norm::Kind norm = Norm::Kind::rms;
  std::string norms[2] = {"input_layernorm", "post_attention_layernorm"};
  std::string attention_name = "self_attn", mlp_name = "mlp";
  AttentionOptions attention;
  MlpOptions mlp;
  bool beside = false;     // x + attention(norm(x)) + mlp(norm'(x))
  bool recompute = false;  // keep x alone, and make the rest again for the backward pass
};

// Sizes, names' prefixes and options that a layer takes from the configuration.
TransformerOptions transformer_options(const BlockContext&, const std::string& name, std::size_t layer);

class TransformerLayer : public Block {
 public:
  TransformerLayer(const BlockContext&, const TransformerOptions&);
  TensorId forward(Writer&, TensorId x, std::size_t micro) override;
  TensorId backward(Writer&, TensorId dy, std::size_t micro) override;

 private:
  struct Saved {
    Norm::Saved norms[2];
    Attention::Saved attention;
    Mlp::Saved mlp;
  };
  struct Kept {
    TensorId x = no_tensor;
    Saved saved;
  };
  TensorId through(Writer&, TensorId x, std::size_t micro, Saved&) const;
  TensorId drop(Writer&, const char* where, TensorId, std::size_t micro) const;

  TransformerOptions options_;
  double dropout_;
  std::uint64_t seed_;
  std::size_t micro_batches_;
  bool scattered_;
  Norm first_norm_;
  Attention attention_;
  Norm second_norm_;
  Mlp mlp_;
  std::map<std::size_t, Kept> kept_;
};

}  // namespace trellis::train
