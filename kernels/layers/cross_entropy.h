// Cross-entropy of rows of logits against labels: loss, log-sum-exp and gradient, whole or for a shard of the classes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

struct CrossEntropyOptions {
  std::int32_t ignore = -100;  // a row with this label counts for nothing
  // The columns are `columns` of `classes` classes, from class `first` on. classes 0: the columns are all classes.
  std::int64_t first = 0;
  std::int64_t classes = 0;
  float factor = 1;  // of the gradient: 1 / counted for the mean
  int threads = 1;
};

struct CrossEntropyResult {
  double loss = 0;          // sum over the rows that are not ignored, in order
  std::size_t counted = 0;  // how many those are
};

// Computes for each row the largest logit, the sum of e^(logit - largest) in the order of rows.h, and the label's
// logit, which is 0 if the label is ignored or another shard's. The caller joins shards: the largest of all, the sum of
// each shard's sums times e^(its largest - the largest of all), the sum of the targets. The sum of a shard that has
// only -infinity is 0. Logits are f32 or bf16, arithmetic is in f32.
void cross_entropy_parts(DType, const void* logits, const std::int32_t* labels, float* largest, float* sums,
                         float* targets, std::size_t rows, std::size_t columns, const CrossEntropyOptions& = {});

// Computes from the parts, in double with each result rounded once: log_sum = largest + log sum (by libm's log;
// rounding to f32 hides where libms differ), loss = log_sum - target, 0 for an ignored row. losses may be null.
CrossEntropyResult cross_entropy_finish(const std::int32_t* labels, const float* largest, const float* sums,
                                        const float* targets, float* losses, float* log_sums, std::size_t rows,
                                        const CrossEntropyOptions& = {});

// Both of the above, for all classes at once.
CrossEntropyResult cross_entropy(DType, const void* logits, const std::int32_t* labels, float* losses, float* log_sums,
                                 std::size_t rows, std::size_t columns, const CrossEntropyOptions& = {});

// dlogits = (e^(logit - log_sum) - (1 where the column is the label)) * factor, 0 in ignored rows, whose logits are not
// read; dlogits may be logits. The rounding of log_sum costs a relative 2^-24 |log_sum| of the exponential.
void cross_entropy_gradient(DType, const void* logits, const std::int32_t* labels, const float* log_sums, void* dlogits,
                            std::size_t rows, std::size_t columns, const CrossEntropyOptions& = {});

// What the gradient kernel's settings point to.
struct CrossEntropySettings {
  std::int32_t ignore;
  std::int64_t first;
  float factor;
};

}  // namespace trellis::kernels
