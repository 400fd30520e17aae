#include "train/layers/attention/partial_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/layers/matmul.h"
#include "kernels/layers/softmax.h"
#include "kernels/reduce/elementwise.h"
#include "train/layers/attention/attention_blocks.h"
#include "train/layers/element_access.h"

namespace trellis::train {
namespace {

using kernels::DType;
using kernels::MatrixView;

constexpr float nothing = -std::numeric_limits<float>::infinity();

// A run of consecutive queries and a run of consecutive keys, of which each query sees some. `first_row`, `first_key`:
// where the runs begin among the queries and keys that are here, in positions.
struct PartBlock {
  ProbabilityBlock p;
  std::size_t first_row, first_key;
  std::size_t elements() const { return p.queries * p.keys; }
};

float scale_of(const AttentionShape& s) { return static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_size))); }

// The positions from .. to of the whole sequence whose keys a query sees.
std::pair<std::size_t, std::size_t> seen_by(const PartialAttention& a, std::size_t query, std::size_t start) {
  const AttentionShape& s = a.shape;
  if (!s.causal) return {0, a.keys.whole};
  const std::size_t end = query + 1;
  return {std::max(start, s.window > 0 && end > s.window ? end - s.window : 0), end};
}

// body(slot, head, block) over all blocks with something to see.
template <class Body>
void each_part_block(const PartialAttention& a, int threads, const Body& body) {
  each_head(a.shape, threads, [&](std::size_t slot, const HeadView& head) {
    for (std::size_t row = 0; row < a.queries.count();) {
      const std::size_t left = a.queries.stretch() - row % a.queries.stretch();
      const std::size_t queries = std::min(query_block, left), query = a.queries.position(row);
      const std::size_t from = seen_by(a, query, 0).first, to = seen_by(a, query + queries - 1, 0).second;
      for (std::size_t stretch = 0; stretch < a.keys.stretches(); ++stretch) {
        const std::size_t first = a.keys.first_of(stretch);
        const std::size_t begin = std::max(from, first), end = std::min(to, first + a.keys.stretch());
        if (begin < end)
          body(slot, head,
               PartBlock{{a.queries.whole, query, queries, begin, end - begin},
                         row,
                         stretch * a.keys.stretch() + begin - first});
      }
      row += queries;
    }
  });
}

// Where rows of queries and keys lie.
struct Rows {
  std::size_t q, kv, log;  // elements from the beginning
  Rows(const AttentionShape& s, const HeadView& h, const PartBlock& b)
      : q(h.q + b.first_row * h.q_stride),
        kv(h.kv + b.first_key * h.kv_stride),
        log((b.first_row * s.batch + h.sequence) * s.heads + h.number) {}
};

// The probabilities among the block's keys and, for each row, the logarithm of the sum of exponentials that they were
// divided by. For a row that sees no key these are 0 and `nothing`.
void block_probabilities(DType type, const PartialAttention& a, const HeadView& h, const PartBlock& b, const void* q,
                         const void* k, const std::int32_t* starts, float* p, float* logs) {
  const AttentionShape& s = a.shape;
  const Rows rows(s, h, b);
  kernels::matmul({b.p.queries, b.p.keys, s.head_size}, type, {element(type, q, rows.q), h.q_stride},
                  {element(type, k, rows.kv), h.kv_stride, true}, DType::f32, p, b.p.keys);
  const float scale = scale_of(s);
  for (std::size_t i = 0; i < b.p.queries; ++i) {
    float* const row = p + i * b.p.keys;
    const std::size_t start =
        starts == nullptr ? 0 : static_cast<std::size_t>(starts[(b.first_row + i) * s.batch + h.sequence]);
    const auto [from, to] = seen_by(a, b.p.query + i, start);
    const std::size_t begin = std::clamp(from, b.p.key, b.p.key + b.p.keys) - b.p.key,
                      end = std::clamp(to, b.p.key, b.p.key + b.p.keys) - b.p.key;
    logs[i] = nothing;
    if (begin >= end) {
      std::fill_n(row, b.p.keys, 0.0F);
      continue;
    }
    std::fill(row, row + begin, nothing);
    std::fill(row + end, row + b.p.keys, nothing);
    const float largest = *std::max_element(row + begin, row + end) * scale;
    logs[i] = std::isnan(largest) ? largest : std::max(largest, std::numeric_limits<float>::lowest());
  }
  kernels::softmax(DType::f32, p, p, b.p.queries, b.p.keys, {.scale = scale});
  for (std::size_t i = 0; i < b.p.queries; ++i) {
    float* const row = p + i * b.p.keys;
    if (logs[i] == nothing)
      std::fill_n(row, b.p.keys, 0.0F);
    else  // the largest probability is 1 / the sum of exponentials relative to the largest score
      logs[i] -= std::log(*std::max_element(row, row + b.p.keys));
  }
}

void scale_row(float* row, std::size_t n, float factor) {
  for (std::size_t i = 0; i < n; ++i) row[i] *= factor;
}

// log(e^a + e^b)
float joined(float a, float b) {
  const float most = std::max(a, b);
  return most == nothing ? nothing : most + std::log1p(std::exp(std::min(a, b) - most));
}

}  // namespace

std::size_t attention_part_scratch(const PartialAttention& a) {
  return most_attention_threads * (4 * query_block * a.keys.stretch() + query_block);
}

void attention_part(DType type, const PartialAttention& a, const void* q, const void* k, const void* v, float* out,
                    float* logs, float* scratch, int threads, const ProbabilityDropout& dropout,
                    const std::int32_t* starts) {
  const AttentionShape& s = a.shape;
  if (a.first) {
    std::fill_n(out, s.rows() * s.heads * s.head_size, 0.0F);
    std::fill_n(logs, s.rows() * s.heads, nothing);
  }
  const std::size_t block = query_block * a.keys.stretch();
  each_part_block(a, threads, [&](std::size_t slot, const HeadView& h, const PartBlock& b) {
    float* const p = scratch + slot * (4 * block + query_block);
    float* const own = p + 4 * block;  // the rows' logarithms
    const Rows rows(s, h, b);
    block_probabilities(type, a, h, b, q, k, starts, p, own);
    for (std::size_t i = 0; i < b.p.queries; ++i) {
      float& log = logs[rows.log + i * s.batch * s.heads];
      const float both = joined(log, own[i]);
      if (both == nothing) continue;
      scale_row(out + rows.q + i * h.q_stride, s.head_size, std::exp(log - both));
      scale_row(p + i * b.p.keys, b.p.keys, std::exp(own[i] - both));
      log = both;
    }
    if (dropout.rate > 0) drop(p, p, h, b.p, dropout);
    kernels::matmul({b.p.queries, s.head_size, b.p.keys}, type, {as_factor(type, p, b.elements(), p + block), b.p.keys},
                    {element(type, v, rows.kv), h.kv_stride}, DType::f32, out + rows.q, h.q_stride, {.beta = 1});
  });
}

void attention_offsets(DType type, const AttentionShape& s, const void* dout, const void* out, float* offsets) {
  typed(type, const_cast<void*>(dout), [&](const auto* grad) {
    const auto* result = static_cast<decltype(grad)>(out);
    for (std::size_t i = 0; i < s.rows() * s.heads; ++i) {
      float sum = 0;
      for (std::size_t c = 0; c < s.head_size; ++c) sum += get(*grad++) * get(*result++);
      offsets[i] = sum;
    }
  });
}

void attention_part_gradient(DType type, const PartialAttention& a, const void* dout, const void* q, const void* k,
                             const void* v, const float* logs, const float* offsets, float* dq, float* dk, float* dv,
                             float* scratch, int threads, const ProbabilityDropout& dropout,
                             const std::int32_t* starts) {
  const AttentionShape& s = a.shape;
  if (a.first) std::fill_n(dq, s.rows() * s.heads * s.head_size, 0.0F);
  for (float* const d : {dk, dv}) std::fill_n(d, a.keys.count() * s.batch * s.kv_heads * s.head_size, 0.0F);
  const float scale = scale_of(s);
  const std::size_t block = query_block * a.keys.stretch();
  each_part_block(a, threads, [&](std::size_t slot, const HeadView& h, const PartBlock& b) {
    float *const p = scratch + slot * (4 * block + query_block), *const dp = p + block;
    float *const p_room = dp + block, *const dp_room = p_room + block, *const own = dp_room + block;
    const Rows rows(s, h, b);
    const std::size_t n = b.p.keys;
    const MatrixView grad{element(type, dout, rows.q), h.q_stride};
    block_probabilities(type, a, h, b, q, k, starts, p, own);
    for (std::size_t i = 0; i < b.p.queries; ++i)
      if (own[i] != nothing) scale_row(p + i * n, n, std::exp(own[i] - logs[rows.log + i * s.batch * s.heads]));
    kernels::matmul({b.p.queries, n, s.head_size}, type, grad, {element(type, v, rows.kv), h.kv_stride, true},
                    DType::f32, dp, n);
    // The forward pass weighted values by the probabilities that dropout left.
    float* const weights = dropout.rate > 0 ? dp_room : p;
    if (dropout.rate > 0) drop(p, weights, h, b.p, dropout), drop(dp, dp, h, b.p, dropout);
    kernels::matmul({n, s.head_size, b.p.queries}, type, {as_factor(type, weights, b.elements(), p_room), n, true},
                    grad, DType::f32, dv + rows.kv, h.kv_stride, {.beta = 1});
    for (std::size_t i = 0; i < b.p.queries; ++i) {
      const float offset = offsets[rows.log + i * s.batch * s.heads];
      for (std::size_t j = i * n; j < (i + 1) * n; ++j) dp[j] = p[j] * (dp[j] - offset) * scale;
    }
    const MatrixView ds{as_factor(type, dp, b.elements(), dp_room), n};
    kernels::matmul({b.p.queries, s.head_size, n}, type, ds, {element(type, k, rows.kv), h.kv_stride}, DType::f32,
                    dq + rows.q, h.q_stride, {.beta = 1});
    kernels::matmul({n, s.head_size, b.p.queries}, type, {ds.data, n, true}, {element(type, q, rows.q), h.q_stride},
                    DType::f32, dk + rows.kv, h.kv_stride, {.beta = 1});
  });
}

}  // namespace trellis::train
