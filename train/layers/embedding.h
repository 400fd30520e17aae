// The vocabulary-parallel embedding: each tensor rank has some of the rows; rows of other ranks count as 0 and the
// ranks' results are summed (with sequence parallelism scattered). Learned positions, where there are any, are added.
// Backward: with sequence parallelism dy is gathered.
#pragma once

#include "train/layers/parameter.h"
#include "train/mesh/mesh.h"

namespace trellis::train {

struct EmbeddingOptions {
  std::size_t vocabulary = 0, hidden = 0;
  std::size_t sequence = 0, batch = 1;  // positions of the whole sequence
  std::size_t positions = 0;            // learned ones; 0: none
  std::size_t cached = 0;  // as for attention: StepInputs::step is a run's first position; 0: runs begin at 0
  bool scattered = false;  // sequence parallelism
  double deviation = 0.02;
  std::string name = "model.embed_tokens", position_name = {};
  std::size_t types = 0;  // number of token types, each with a row that is added; 0: none
  std::string type_name = {};
};

class Embedding {
 public:
  Embedding(Writer&, Parameters&, const EmbeddingOptions&);
  TensorId forward(Writer&, TensorId tokens, TensorId types = no_tensor) const;
  void backward(Writer&, TensorId dy, TensorId tokens, TensorId types = no_tensor) const;
  const Parameter& weight() const { return *weight_; }

 private:
  std::size_t rows_of_all(const Writer&) const;
  std::size_t rows_here(const Writer&) const;
  std::size_t first_here(const Writer&) const;
  EmbeddingOptions options_;
  SequencePart part_;  // the positions of this rank
  const Parameter* weight_;
  const Parameter* positions_ = nullptr;
  const Parameter* types_ = nullptr;
};

}  // namespace trellis::train
