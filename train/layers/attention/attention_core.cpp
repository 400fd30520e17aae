#include "train/layers/attention/attention_core.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/layers/matmul.h"
#include "kernels/layers/softmax.h"
#include "kernels/reduce/cast.h"
#include "kernels/reduce/elementwise.h"
#include "train/layers/attention/attention_blocks.h"

namespace trellis::train {
namespace {

using kernels::DType;
using kernels::MatrixView;

// A block of queries, and the keys that they may see: `keys` of them from `from` on.
struct Block {
  std::size_t first, queries, from, keys;
  std::size_t kv(const HeadView& h) const { return h.kv + from * h.kv_stride; }
};

Block block_at(const AttentionShape& s, std::size_t first) {
  const std::size_t queries = std::min(query_block, s.sequence - first);
  const std::size_t end = s.causal ? s.before + first + queries : s.keys();
  const std::size_t seen = s.before + first + 1;  // keys up to the first query's own
  const std::size_t from = s.window > 0 && seen > s.window ? seen - s.window : 0;
  return {first, queries, from, end - from};
}

// body(slot, head, block) over all blocks of all heads.
template <class Body>
void each_block(const AttentionShape& s, int threads, const Body& body) {
  each_head(s, threads, [&](std::size_t slot, const HeadView& head) {
    for (std::size_t first = 0; first < s.sequence; first += query_block) body(slot, head, block_at(s, first));
  });
}

ProbabilityBlock probabilities_of(const AttentionShape& s, const Block& b) {
  return {s.sequence, b.first, b.queries, b.from, b.keys};
}

// Hides the keys before each query's window. The first query's window begins with the block's first key.
void hide_before_window(float* scores, const AttentionShape& s, const Block& b) {
  for (std::size_t q = 0; q < b.queries; ++q) {
    const std::size_t seen = s.before + b.first + q + 1;
    const std::size_t begin = seen > s.window ? seen - s.window : 0;
    std::fill_n(scores + q * b.keys, begin - b.from, -std::numeric_limits<float>::infinity());
  }
}

// The probabilities of a block, in f32.
void probabilities(DType type, const AttentionShape& s, const HeadView& h, const Block& b, const void* q, const void* k,
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
  each_block(s, threads, [&](std::size_t slot, const HeadView& h, const Block& b) {
    float* const p = scratch + slot * 2 * block;
    void* const narrow = p + block;
    probabilities(type, s, h, b, q, k, starts, p);
    if (dropout.rate > 0) drop(p, p, h, probabilities_of(s, b), dropout);
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
  each_block(s, threads, [&](std::size_t slot, const HeadView& h, const Block& b) {
    float *const p = scratch + slot * 4 * block, *const dp = p + block;
    void *const p_room = dp + block, *const dp_room = dp + 2 * block;
    const std::size_t n = b.queries * b.keys, at = h.q + b.first * h.q_stride;
    const MatrixView grad{element(type, dout, at), h.q_stride};
    probabilities(type, s, h, b, q, k, starts, p);
    kernels::matmul({b.queries, b.keys, s.head_size}, type, grad, {element(type, v, b.kv(h)), h.kv_stride, true},
                    DType::f32, dp, b.keys);
    // The forward pass weighted values by the probabilities after dropout. softmax's gradient needs those before it.
    float* const weights = dropout.rate > 0 ? static_cast<float*>(dp_room) : p;
    if (dropout.rate > 0) {
      drop(p, weights, h, probabilities_of(s, b), dropout);
      drop(dp, dp, h, probabilities_of(s, b), dropout);
    }
    kernels::matmul({b.keys, s.head_size, b.queries}, type, {as_factor(type, weights, n, p_room), b.keys, true}, grad,
                    DType::f32, v_sum + b.kv(h), h.kv_stride, {.beta = 1});
    kernels::softmax_gradient(DType::f32, dp, p, dp, b.queries, b.keys,
                              {.scale = scale, .queries = s.causal ? b.queries : 0});
    const MatrixView ds{as_factor(type, dp, n, dp_room), b.keys};
    kernels::matmul({b.queries, s.head_size, b.keys}, type, ds, {element(type, k, b.kv(h)), h.kv_stride}, type,
                    element(type, dq, at), h.q_stride);
    kernels::matmul({b.keys, s.head_size, b.queries}, type, {ds.data, b.keys, true}, {element(type, q, at), h.q_stride},
                    DType::f32, k_sum + b.kv(h), h.kv_stride, {.beta = 1});
  });
  kernels::cast(DType::f32, k_sum, type, dk, kv);
  kernels::cast(DType::f32, v_sum, type, dv, kv);
}

}  // namespace trellis::train
