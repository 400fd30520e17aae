#include "train/layers/attention_core.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "kernels/dispatch/cpu.h"
#include "kernels/dispatch/parallel.h"
#include "kernels/layers/matmul.h"
#include "kernels/layers/softmax.h"
#include "kernels/reduce/cast.h"
#include "kernels/reduce/elementwise.h"

namespace trellis::train {
namespace {

using kernels::DType;
using kernels::Factor;

// One head of one sequence: where its rows begin, and how far apart they are.
struct Head {
  std::size_t q, kv;  // elements
  std::size_t q_stride, kv_stride;
  std::size_t sequence, number;
};

Head head_of(const AttentionShape& s, std::size_t sequence, std::size_t head) {
  const std::size_t wide = s.heads * s.head_size, narrow = s.kv_heads * s.head_size;
  return {sequence * wide + head * s.head_size,
          sequence * narrow + head / (s.heads / s.kv_heads) * s.head_size,
          s.batch * wide,
          s.batch * narrow,
          sequence,
          head};
}

const void* element(DType type, const void* array, std::size_t i) {
  return static_cast<const std::byte*>(array) + i * kernels::size_of(type);
}
void* element(DType type, void* array, std::size_t i) {
  return static_cast<std::byte*>(array) + i * kernels::size_of(type);
}

// A block of queries, and the keys that they may see: so many from `from` on.
struct Block {
  std::size_t first, queries, from, keys;
  std::size_t kv(const Head& h) const { return h.kv + from * h.kv_stride; }
};

Block block_at(const AttentionShape& s, std::size_t first) {
  const std::size_t queries = std::min(query_block, s.sequence - first);
  const std::size_t end = s.causal ? s.before + first + queries : s.keys();
  const std::size_t seen = s.before + first + 1;  // keys up to the first query's own
  const std::size_t from = s.window > 0 && seen > s.window ? seen - s.window : 0;
  return {first, queries, from, end - from};
}

// Heads of keys of all sequences, in shares of threads: work(slot, body over blocks of the share's heads). A head of
// keys is one thread's, so that its gradient's sums have one order.
template <class Body>
void each_block(const AttentionShape& s, int threads, const Body& body) {
  std::atomic<std::size_t> slots = 0;
  const int cores = threads == 0 ? kernels::cpu().cores : threads;
  const std::size_t shared = s.heads / s.kv_heads;
  kernels::parallel(std::min(cores, most_attention_threads), s.batch * s.kv_heads,
                    [&](std::size_t from, std::size_t to) {
                      const std::size_t slot = slots++;
                      for (std::size_t unit = from; unit < to; ++unit)
                        for (std::size_t i = 0; i < shared; ++i) {
                          const Head head = head_of(s, unit / s.kv_heads, unit % s.kv_heads * shared + i);
                          for (std::size_t first = 0; first < s.sequence; first += query_block)
                            body(slot, head, block_at(s, first));
                        }
                    });
}

// Keys before a query's window: the first query's window begins with the block's first key.
void hide_before_window(float* scores, const AttentionShape& s, const Block& b) {
  for (std::size_t q = 0; q < b.queries; ++q) {
    const std::size_t seen = s.before + b.first + q + 1;
    const std::size_t begin = seen > s.window ? seen - s.window : 0;
    std::fill_n(scores + q * b.keys, begin - b.from, -std::numeric_limits<float>::infinity());
  }
}

// The probabilities of a block, in f32.
void probabilities(DType type, const AttentionShape& s, const Head& h, const Block& b, const void* q, const void* k,
                   const std::int32_t* starts, float* out) {
  kernels::matmul({b.queries, b.keys, s.head_size}, type, {element(type, q, h.q + b.first * h.q_stride), h.q_stride},
                  {element(type, k, b.kv(h)), h.kv_stride, true}, DType::f32, out, b.keys);
  for (std::size_t i = 0; i < b.queries && starts != nullptr; ++i) {
    const auto begin = static_cast<std::size_t>(starts[(b.first + i) * s.batch + h.sequence]);
    std::fill_n(out + i * b.keys, begin > b.from ? begin - b.from : 0, -std::numeric_limits<float>::infinity());
  }
  if (s.window > 0) hide_before_window(out, s, b);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_size)));
  kernels::softmax(DType::f32, out, out, b.queries, b.keys, {.scale = scale, .queries = s.causal ? b.queries : 0});
}

// What dropout makes of a block: from may be to.
void drop(const float* from, float* to, const AttentionShape& s, const Head& h, const Block& b,
          const ProbabilityDropout& d) {
  const auto below = static_cast<std::uint32_t>(d.rate * 65536);
  const auto scale = static_cast<float>(1 / (1 - d.rate));
  const std::uint64_t head = (h.sequence * d.heads + d.first_head + h.number) * s.sequence;
  for (std::size_t q = 0; q < b.queries; ++q)
    for (std::size_t k = 0; k < b.keys; ++k) {
      const std::uint64_t index = (head + b.first + q) * s.sequence + b.from + k;
      const std::size_t i = q * b.keys + k;
      to[i] = kernels::random16(d.key, index) < below ? 0.0F : from[i] * scale;
    }
}

// A block of f32 as a factor for products in `type`: itself, or cast into `room`.
const void* as_factor(DType type, const float* block, std::size_t n, void* room) {
  if (type == DType::f32) return block;
  kernels::cast(DType::f32, block, type, room, n);
  return room;
}

}  // namespace

double AttentionShape::flops() const {
  const auto n = static_cast<double>(sequence), w = static_cast<double>(window);
  const bool shorter = window > 0 && window < sequence;
  const double pairs = shorter ? w * n - w * w / 2 : n * n / (causal ? 2 : 1);
  return 4 * pairs * static_cast<double>(batch * heads * head_size);
}

std::size_t attention_scratch(const AttentionShape& s) { return most_attention_threads * 2 * query_block * s.keys(); }

std::size_t attention_gradient_scratch(const AttentionShape& s) {
  return most_attention_threads * 4 * query_block * s.sequence + 2 * s.rows() * s.kv_heads * s.head_size;
}

void attention(DType type, const AttentionShape& s, const void* q, const void* k, const void* v, void* out,
               float* scratch, int threads, const ProbabilityDropout& dropout, const std::int32_t* starts) {
  const std::size_t block = query_block * s.keys();
  each_block(s, threads, [&](std::size_t slot, const Head& h, const Block& b) {
    float* const p = scratch + slot * 2 * block;
    void* const narrow = p + block;
    probabilities(type, s, h, b, q, k, starts, p);
    if (dropout.rate > 0) drop(p, p, s, h, b, dropout);
    kernels::matmul({b.queries, s.head_size, b.keys}, type, {as_factor(type, p, b.queries * b.keys, narrow), b.keys},
                    {element(type, v, b.kv(h)), h.kv_stride}, type, element(type, out, h.q + b.first * h.q_stride),
                    h.q_stride);
  });
}

void attention_gradient(DType type, const AttentionShape& s, const void* dout, const void* q, const void* k,
                        const void* v, void* dq, void* dk, void* dv, float* scratch, int threads,
                        const ProbabilityDropout& dropout, const std::int32_t* starts) {
  const std::size_t block = query_block * s.sequence, kv = s.rows() * s.kv_heads * s.head_size;
  // Sums of keys' and values' gradients over the heads that they serve, in f32.
  float *const k_sum = scratch + most_attention_threads * 4 * block, *const v_sum = k_sum + kv;
  kernels::fill(DType::f32, k_sum, 2 * kv, 0);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_size)));
  each_block(s, threads, [&](std::size_t slot, const Head& h, const Block& b) {
    float *const p = scratch + slot * 4 * block, *const dp = p + block;
    void *const p_room = dp + block, *const dp_room = dp + 2 * block;
    const std::size_t n = b.queries * b.keys, at = h.q + b.first * h.q_stride;
    const Factor grad{element(type, dout, at), h.q_stride};
    probabilities(type, s, h, b, q, k, starts, p);
    kernels::matmul({b.queries, b.keys, s.head_size}, type, grad, {element(type, v, b.kv(h)), h.kv_stride, true},
                    DType::f32, dp, b.keys);
    // Values were weighted by what dropout left of the probabilities; these were not, when softmax made them.
    float* const weights = dropout.rate > 0 ? static_cast<float*>(dp_room) : p;
    if (dropout.rate > 0) drop(p, weights, s, h, b, dropout), drop(dp, dp, s, h, b, dropout);
    kernels::matmul({b.keys, s.head_size, b.queries}, type, {as_factor(type, weights, n, p_room), b.keys, true}, grad,
                    DType::f32, v_sum + b.kv(h), h.kv_stride, {.beta = 1});
    kernels::softmax_gradient(DType::f32, dp, p, dp, b.queries, b.keys,
                              {.scale = scale, .queries = s.causal ? b.queries : 0});
    const Factor ds{as_factor(type, dp, n, dp_room), b.keys};
    kernels::matmul({b.queries, s.head_size, b.keys}, type, ds, {element(type, k, b.kv(h)), h.kv_stride}, type,
                    element(type, dq, at), h.q_stride);
    kernels::matmul({b.keys, s.head_size, b.queries}, type, {ds.data, b.keys, true}, {element(type, q, at), h.q_stride},
                    DType::f32, k_sum + b.kv(h), h.kv_stride, {.beta = 1});
  });
  kernels::cast(DType::f32, k_sum, type, dk, kv);
  kernels::cast(DType::f32, v_sum, type, dv, kv);
}

}  // namespace trellis::train
