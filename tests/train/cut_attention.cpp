// Attention that is cut at the borders of documents equals attention over each document by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include "train/layers/attention/attention_core.h"

namespace trellis::train {
namespace {

using Rows = std::vector<float>;

// The rows of one sequence, positions first to first + length, from rows of several sequences.
Rows part(const Rows& all, std::size_t first, std::size_t length, std::size_t sequence, std::size_t batch,
          std::size_t width) {
  Rows out;
  for (std::size_t s = first; s < first + length; ++s)
    for (std::size_t i = 0; i < width; ++i) out.push_back(all[(s * batch + sequence) * width + i]);
  return out;
}

struct Made {
  Rows out, dq, dk, dv;
};

Made made(const AttentionShape& s, const Rows& q, const Rows& k, const Rows& v, const Rows& dout,
          const std::int32_t* starts) {
  const std::size_t wide = s.rows() * s.heads * s.head_size, narrow = s.rows() * s.kv_heads * s.head_size;
  Made m{Rows(wide), Rows(wide), Rows(narrow), Rows(narrow)};
  Rows scratch(std::max(attention_scratch(s), attention_gradient_scratch(s)));
  attention(kernels::DType::f32, s, q.data(), k.data(), v.data(), m.out.data(), scratch.data(), 1, {}, starts);
  attention_gradient(kernels::DType::f32, s, dout.data(), q.data(), k.data(), v.data(), m.dq.data(), m.dk.data(),
                     m.dv.data(), scratch.data(), 1, {}, starts);
  return m;
}

TEST(CutAttention, IsThatOfEachDocumentAlone) {
  constexpr std::size_t length = 150, batch = 2, heads = 4, kv = 2, size = 8;
  const AttentionShape whole{
      .sequence = length, .batch = batch, .heads = heads, .kv_heads = kv, .head_size = size, .causal = true};
  const auto filled = [](std::size_t n, int seed) {
    Rows r(n);
    for (std::size_t i = 0; i < n; ++i) r[i] = std::sin(static_cast<float>(i * 13 % 97) + static_cast<float>(seed));
    return r;
  };
  const std::size_t wide = heads * size, narrow = kv * size, rows = length * batch;
  const Rows q = filled(rows * wide, 1), k = filled(rows * narrow, 2), v = filled(rows * narrow, 3),
             dout = filled(rows * wide, 4);
  const std::vector<std::size_t> documents[batch] = {{0, 1, 63, 64, 65, 130, length}, {0, 100, length}};
  std::vector<std::int32_t> starts(rows);
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t d = 0; d + 1 < documents[b].size(); ++d)
      for (std::size_t s = documents[b][d]; s < documents[b][d + 1]; ++s)
        starts[s * batch + b] = static_cast<std::int32_t>(documents[b][d]);
  const Made cut = made(whole, q, k, v, dout, starts.data());
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t d = 0; d + 1 < documents[b].size(); ++d) {
      const std::size_t first = documents[b][d], n = documents[b][d + 1] - first;
      const auto of = [&](const Rows& all, std::size_t width) { return part(all, first, n, b, batch, width); };
      AttentionShape alone = whole;
      alone.sequence = n, alone.batch = 1;
      const Made m = made(alone, of(q, wide), of(k, narrow), of(v, narrow), of(dout, wide), nullptr);
      const std::tuple<const Rows*, Rows, const char*> pairs[] = {{&m.out, of(cut.out, wide), "out"},
                                                                  {&m.dq, of(cut.dq, wide), "dq"},
                                                                  {&m.dk, of(cut.dk, narrow), "dk"},
                                                                  {&m.dv, of(cut.dv, narrow), "dv"}};
      for (const auto& [expected, got, what] : pairs)
        for (std::size_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got[i], (*expected)[i], 1e-5) << what << " of the document at " << first << ", " << i;
    }
}

}  // namespace
}  // namespace trellis::train
