// A model is blocks one after the other: an embedding, layers, a head with the loss. A pipeline stage is some of them.
// A file of this folder defines a model and registers it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "train/config/config.h"
#include "train/layers/parameter.h"

namespace trellis::train {

// A part of a model; it writes operations. What the backward pass needs is kept under the micro-batch's number.
class Block {
 public:
  virtual ~Block() = default;
  virtual TensorId forward(Writer&, TensorId x, std::size_t micro) = 0;
  virtual TensorId backward(Writer&, TensorId dy, std::size_t micro) = 0;  // returns dx
  virtual void update(Writer&) {}  // called after the passes of a step, for what has no gradient
};

// What blocks are made from.
struct BlockContext {
  const StepConfig& config;
  Writer& writer;
  Parameters& parameters;
  std::vector<TensorId> labels = {};  // by micro-batch; for the head
  TensorId loss = no_tensor;
  std::size_t micro_batches = 1;
  std::vector<TensorId> types = {}, next = {};  // models of pairs: for the embedding, for the head
  std::size_t cached = 0;                       // generation: positions that attention keeps; 0: no generation
  TensorId logits = no_tensor;                  // generation: the head's result, batch x the whole vocabulary
  bool first_stage = true;                      // false: the head's copy of a tied weight is not the owner
  std::vector<TensorId> starts = {};            // cut attention: the first position that each token's attention sees
  std::vector<TensorId> counted = {};           // context axis: for the head, how many labels count

  std::size_t batch() const { return config.micro_batch_size; }
  bool scattered() const { return config.strategy.sequence_parallel && writer.shape().tensor > 1; }
};

struct Model {
  std::string name;
  // The embedding's x is the micro-batch's tokens; the head's result is no_tensor, as is its dy.
  std::function<std::unique_ptr<Block>(const BlockContext&)> embedding, head;
  std::function<std::unique_ptr<Block>(const BlockContext&, std::size_t layer)> layer;
  std::string tied = {};  // the weight that embedding and head share where word embeddings are tied
  // The model reads pairs of stretches, some tokens of which are to be guessed (data/bert_samples.h): the embedding
  // also reads each token's type, and the head whether the second stretch follows the first.
  bool pairs = false;
  bool experts = false;  // some of its layers have a mixture of experts
};

// Defining one at namespace scope registers the model.
struct RegisteredModel {
  explicit RegisteredModel(Model);
};
const std::map<std::string, Model, std::less<>>& models();
const Model& model_named(std::string_view);  // throws invalid_argument that lists the known ones

}  // namespace trellis::train
