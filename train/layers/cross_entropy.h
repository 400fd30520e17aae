// Cross-entropy of logits whose classes are cut over the tensor axis: three reductions of one number a row (the largest
// logit, the sum of exponentials, the label's logit), a fourth with label smoothing. Labels of -100 count for nothing.
#pragma once

#include "train/step/writer.h"

namespace trellis::train {

struct LossOptions {
  std::size_t classes = 0;     // of all tensor ranks together
  double label_smoothing = 0;  // 0 to below 1
  double weight = 1;           // of the mean loss: 1 / the number of micro-batches, times the ranks of the context axis
  bool whole = false;          // every tensor rank has all classes
};

struct LossSaved {
  TensorId logits = no_tensor, labels = no_tensor, log_sums = no_tensor;
  TensorId counted = no_tensor;  // one i32: of how many rows the loss is a mean, where other ranks have some of them
};

// How many labels count for the loss.
std::size_t counted_labels(const std::int32_t* labels, std::size_t n);

// logits: f32, rows x this rank's classes. Adds the weighted mean over the rows that count to `loss` (one f64), on
// every tensor rank the same. Of LossSaved, `counted` is an input; the rest is set here. With smoothing a, the target
// is (1 - a) at the label and a / (K - 1) elsewhere, K classes.
void cross_entropy(Writer&, TensorId logits, TensorId labels, TensorId loss, const LossOptions&, LossSaved&);

// The gradient, in the logits' memory.
TensorId cross_entropy_gradient(Writer&, const LossSaved&, const LossOptions&);

}  // namespace trellis::train
