// Attention in parts: the queries of one context rank over the keys of another, whose results are joined. What a part
// adds is weighted by its share of each row's sum of exponentials, so that after the last part the result is that of
// all keys together; each row's logarithm of the sum is kept beside it. The backward pass computes the probabilities
// again from these logarithms.
#pragma once

#include "train/layers/attention/attention_core.h"
#include "train/mesh/mesh.h"

namespace trellis::train {

struct PartialAttention {
  AttentionShape shape;        // its sequence: positions of a rank
  SequencePart queries, keys;  // which positions of the whole sequence
  bool first = false;          // nothing was joined before
};

// Scratch of both functions below, in f32 elements.
std::size_t attention_part_scratch(const PartialAttention&);

// Updates out (f32, as q) and logs (f32, rows x heads), so that they cover this part's keys and those before. starts:
// the first position of the whole sequence that each row sees; null: 0. Threads and types are as for attention().
void attention_part(kernels::DType, const PartialAttention&, const void* q, const void* k, const void* v, float* out,
                    float* logs, float* scratch, int threads = 1, const ProbabilityDropout& = {},
                    const std::int32_t* starts = nullptr);

// By row and head, the sum of dout x out, which softmax's gradient subtracts.
void attention_offsets(kernels::DType, const AttentionShape&, const void* dout, const void* out, float* offsets);

// dq (f32, as q) becomes the sum over this part and those before; dk and dv, f32 as k and v, are of this part alone.
void attention_part_gradient(kernels::DType, const PartialAttention&, const void* dout, const void* q, const void* k,
                             const void* v, const float* logs, const float* offsets, float* dq, float* dk, float* dv,
                             float* scratch, int threads = 1, const ProbabilityDropout& = {},
                             const std::int32_t* starts = nullptr);

}  // namespace trellis::train
