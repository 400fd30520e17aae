// What the attention cores have in common: heads that threads share, and blocks of probabilities.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "kernels/dispatch/cpu.h"
#include "kernels/dispatch/parallel.h"
#include "train/layers/attention/attention_core.h"

namespace trellis::train {

// One head of one sequence: where its rows begin, and how far apart they are.
struct HeadView {
  std::size_t q, kv;  // elements
  std::size_t q_stride, kv_stride;
  std::size_t sequence, number;
};

// Shares out the key heads of all sequences among threads, which call body(slot, head) for each head that a key head
// serves. One thread has all of a key head, so that its gradient is summed in one order.
template <class Body>
void each_head(const AttentionShape& s, int threads, const Body& body) {
  std::atomic<std::size_t> slots = 0;
  const int cores = threads == 0 ? kernels::cpu().cores : threads;
  const std::size_t shared = s.heads / s.kv_heads, wide = s.heads * s.head_size, narrow = s.kv_heads * s.head_size;
  kernels::parallel(
      std::min(cores, most_attention_threads), s.batch * s.kv_heads, [&](std::size_t from, std::size_t to) {
        const std::size_t slot = slots++;
        for (std::size_t unit = from; unit < to; ++unit)
          for (std::size_t i = 0; i < shared; ++i) {
            const std::size_t sequence = unit / s.kv_heads, kv = unit % s.kv_heads;
            const std::size_t head = kv * shared + i;
            body(slot, HeadView{sequence * wide + head * s.head_size, sequence * narrow + kv * s.head_size,
                                s.batch * wide, s.batch * narrow, sequence, head});
          }
      });
}

// The probabilities of a run of consecutive queries over a run of consecutive keys. `whole`: positions of a sequence.
struct ProbabilityBlock {
  std::size_t whole;
  std::size_t query, queries;  // the position of the first, and how many
  std::size_t key, keys;
};

// Applies dropout to a block. `from` may be `to`.
void drop(const float* from, float* to, const HeadView&, const ProbabilityBlock&, const ProbabilityDropout&);

// A block of f32 as a factor for products in `type`: itself, or cast into `room`.
const void* as_factor(kernels::DType type, const float* block, std::size_t n, void* room);

inline const void* element(kernels::DType type, const void* array, std::size_t i) {
  return static_cast<const std::byte*>(array) + i * kernels::size_of(type);
}
inline void* element(kernels::DType type, void* array, std::size_t i) {
  return static_cast<std::byte*>(array) + i * kernels::size_of(type);
}

}  // namespace trellis::train
