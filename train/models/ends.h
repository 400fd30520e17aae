// The two ends of a language model: the embedding of tokens, and the last norm with the projection onto the vocabulary
// and the loss.
#pragma once

#include <memory>
#include <string>

#include "train/layers/norm.h"
#include "train/models/model_interface.h"

namespace trellis::train {

struct EmbeddingOptions;

// name: name of the table of tokens; positions: name of the table of learned positions, or empty.
EmbeddingOptions embedding_options(const BlockContext&, const std::string& name, const std::string& positions);

class EmbeddingBlock : public Block {
 public:
  // position_name: name of the table of learned positions; empty: none.
  EmbeddingBlock(const BlockContext&, const std::string& name, const std::string& position_name = {});
  ~EmbeddingBlock() override;
  TensorId forward(Writer&, TensorId tokens, std::size_t micro) override;
  TensorId backward(Writer&, TensorId dy, std::size_t micro) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

class HeadBlock : public Block {
 public:
  // weight: name of the projection's weight, without ".weight"; with tied embeddings, the embedding's name.
  HeadBlock(const BlockContext&, Norm::Kind, const std::string& norm, const std::string& weight);
  ~HeadBlock() override;
  TensorId forward(Writer&, TensorId x, std::size_t micro) override;
  TensorId backward(Writer&, TensorId, std::size_t micro) override;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace trellis::train
