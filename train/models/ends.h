// The two ends of a language model: the embedding of tokens, and the last norm with the projection onto the vocabulary
// and the loss.
#pragma once

#include <map>

#include "train/layers/cross_entropy.h"
#include "train/layers/embedding.h"
#include "train/layers/linear.h"
#include "train/layers/norm.h"
#include "train/models/block.h"

namespace trellis::train {

// name: of the table; positions: of learned positions, or empty.
EmbeddingOptions embedding_options(const BlockContext&, const std::string& name, const std::string& positions);

class EmbeddingBlock : public Block {
 public:
  // position_name: of learned positions; empty: none.
  EmbeddingBlock(const BlockContext&, const std::string& name, const std::string& position_name = {});
  TensorId forward(Writer&, TensorId tokens, std::size_t micro) override;
  TensorId backward(Writer&, TensorId dy, std::size_t micro) override;

 private:
  Embedding embedding_;
  std::map<std::size_t, TensorId> tokens_;
};

class HeadBlock : public Block {
 public:
  // weight: of the projection, without ".weight": the embedding's where these are tied.
  HeadBlock(const BlockContext&, Norm::Kind, const std::string& norm, const std::string& weight);
  TensorId forward(Writer&, TensorId x, std::size_t micro) override;
  TensorId backward(Writer&, TensorId, std::size_t micro) override;

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
  CrossEntropyPlan plan_;
  std::vector<TensorId> labels_, counted_;
  TensorId loss_;
  std::size_t batch_;
  TensorId logits_;  // no_tensor: there is a loss
  std::map<std::size_t, Kept> kept_;
};

}  // namespace trellis::train
