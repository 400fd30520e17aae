// Products of experts' rows with their weights. An expert's rows follow each other. How many there are is only known
// when the step runs, or follows from the capacity.
#pragma once

#include <utility>
#include <vector>

#include "train/layers/parameter.h"

namespace trellis::train {

// The rows of each expert of this rank.
struct ExpertRows {
  std::size_t experts = 1;      // here
  std::size_t fixed = 0;        // rows of each; 0: `counts` has them
  TensorId counts = no_tensor;  // i32, by rank that sends and then by expert
  std::size_t ranks = 1;
  double expected = 0;  // rows of each expert that prices assume
  double taken = 1;     // the part of them that has tokens, where all experts get as many

  struct Run {
    std::size_t first, rows;
  };
  std::vector<Run> runs(const Memory&) const;
  std::size_t total(const Memory&) const;
  void read_by(std::vector<TensorId>& reads) const {
    if (fixed == 0) reads.push_back(counts);
  }
};

struct ExpertProductOptions {
  bool accumulate = false;
  bool again = false, joined = false;  // as in ProductOptions
};

// For each expert: c = a W^T, or with `back` c = a W; with `accumulate` the product is added to c. `weights` has a
// tensor for each expert's weight.
void expert_product(Writer&, std::string_view name, TensorId a, const std::vector<const Parameter*>&,
                    const std::vector<TensorId>& weights, bool back, TensorId c, const ExpertRows&,
                    const ExpertProductOptions& = {});

// For each expert: dW += factor dy^T x.
void expert_gradients(Writer&, std::string_view name, TensorId dy, TensorId x, const std::vector<const Parameter*>&,
                      const ExpertRows&, float factor);

// Writes an element-wise operation over the rows that arrived. body gets the number of their elements.
void over_expert_rows(Writer&, std::string_view name, std::string_view kind, std::vector<TensorId> reads,
                      std::vector<TensorId> writes, double flops_each, const ExpertRows&,
                      std::function<void(const Memory&, std::size_t elements)> body);

}  // namespace trellis::train
