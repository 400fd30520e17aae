// The attention core of some heads: softmax(q k^T / sqrt(d)) v, causal or not, a block of queries at a time, so that
// memory grows with the sequence and not with its square. The backward pass recomputes the probabilities.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types/dtype.h"
#include "kernels/types/random.h"

namespace trellis::train {

// Rows are tokens: all sequences' first ones, then all second ones, and so on; a row has the heads one after the other.
struct AttentionShape {
  std::size_t sequence = 0;
  std::size_t batch = 1;
  std::size_t heads = 1;
  std::size_t kv_heads = 1;  // each serves heads / kv_heads of the heads
  std::size_t head_size = 0;
  bool causal = true;
  std::size_t window = 0;  // if causal: keys that a query sees, its own too; 0: all before
  std::size_t before = 0;  // keys before the first query: k and v have so many rows of tokens more

  std::size_t keys() const { return before + sequence; }
  std::size_t rows() const { return sequence * batch; }
  double flops() const;  // of the forward pass
};

inline constexpr std::size_t query_block = 64;

// Scratch that the functions below need, in f32 elements: room for most_attention_threads threads.
inline constexpr int most_attention_threads = 4;
std::size_t attention_scratch(const AttentionShape&);
std::size_t attention_gradient_scratch(const AttentionShape&);

// Drops probabilities with the probability `rate`, and divides the others by 1 - rate; which ones is decided by the key
// and the probability's index among those of all heads of the layer, of which this rank has those from `first_head` on.
struct ProbabilityDropout {
  double rate = 0;
  kernels::RandomKey key = {};
  std::size_t first_head = 0, heads = 0;
};

// All tensors have one type, f32 or bf16; sums are in f32. starts: with causal attention, the first position that each
// row sees; null: 0. Threads divide among them all sequences' groups of heads that share a head of keys.
void attention(kernels::DType, const AttentionShape&, const void* q, const void* k, const void* v, void* out,
               float* scratch, int threads = 1, const ProbabilityDropout& = {}, const std::int32_t* starts = nullptr);
void attention_gradient(kernels::DType, const AttentionShape&, const void* dout, const void* q, const void* k,
                        const void* v, void* dq, void* dk, void* dv, float* scratch, int threads = 1,
                        const ProbabilityDropout& = {}, const std::int32_t* starts = nullptr);

}  // namespace trellis::train
