// Attention in parts, joined over the ranks of a context axis, is attention over all keys at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "train/layers/attention/partial_attention.h"

namespace trellis::train {
namespace {

using Rows = std::vector<float>;
using kernels::DType;

Rows filled(std::size_t n, int seed) {
  Rows r(n);
  for (std::size_t i = 0; i < n; ++i) r[i] = std::sin(static_cast<float>(i * 13 % 997) + static_cast<float>(seed));
  return r;
}

struct Made {
  Rows out, dq, dk, dv;
};

struct Case {
  std::string name;
  AttentionShape shape;  // of the whole sequence
  Rank ranks = 2;
  std::vector<std::int32_t> starts = {};
  ProbabilityDropout dropout = {};
};

struct Given {
  Rows q, k, v, dout;
  explicit Given(const AttentionShape& s)
      : q(filled(s.rows() * s.heads * s.head_size, 1)),
        k(filled(s.rows() * s.kv_heads * s.head_size, 2)),
        v(filled(k.size(), 3)),
        dout(filled(q.size(), 4)) {}
};

Made whole(const Case& c, const Given& g) {
  const AttentionShape& s = c.shape;
  Made m{Rows(g.q.size()), Rows(g.q.size()), Rows(g.k.size()), Rows(g.k.size())};
  Rows scratch(std::max(attention_scratch(s), attention_gradient_scratch(s)));
  const std::int32_t* const starts = c.starts.empty() ? nullptr : c.starts.data();
  attention(DType::f32, s, g.q.data(), g.k.data(), g.v.data(), m.out.data(), scratch.data(), 1, c.dropout, starts);
  attention_gradient(DType::f32, s, g.dout.data(), g.q.data(), g.k.data(), g.v.data(), m.dq.data(), m.dk.data(),
                     m.dv.data(), scratch.data(), 1, c.dropout, starts);
  return m;
}

// Takes a rank's rows from those of the whole sequence; add() puts them back.
template <class T>
std::vector<T> taken(const std::vector<T>& all, const SequencePart& part, std::size_t row) {
  std::vector<T> out;
  for (std::size_t i = 0; i < part.count(); ++i)
    for (std::size_t x = 0; x < row; ++x) out.push_back(all[part.position(i) * row + x]);
  return out;
}
void add(Rows& all, const Rows& some, const SequencePart& part, std::size_t row) {
  for (std::size_t i = 0; i < part.count(); ++i)
    for (std::size_t x = 0; x < row; ++x) all[part.position(i) * row + x] += some[i * row + x];
}

// Computes one rank after the other, each with the keys of all, its own first.
Made in_parts(const Case& c, const Given& g, int threads) {
  const AttentionShape& s = c.shape;
  const std::size_t wide = s.batch * s.heads * s.head_size, narrow = s.batch * s.kv_heads * s.head_size;
  Made m{Rows(g.q.size()), Rows(g.q.size()), Rows(g.k.size()), Rows(g.k.size())};
  for (Rank r = 0; r < c.ranks; ++r) {
    PartialAttention part{.shape = s, .queries = {s.sequence, c.ranks, r}, .keys = {s.sequence, c.ranks, r}};
    part.shape.sequence = part.queries.count();
    const auto of = [&](const Rows& all, std::size_t row) { return taken(all, part.queries, row); };
    const Rows q = of(g.q, wide), dout = of(g.dout, wide);
    const auto starts = c.starts.empty() ? c.starts : taken(c.starts, part.queries, s.batch);
    const std::int32_t* const first_seen = starts.empty() ? nullptr : starts.data();
    const std::size_t numbers = part.shape.rows() * s.heads;
    Rows out(q.size()), logs(numbers), offsets(numbers), dq(q.size()), scratch(attention_part_scratch(part));
    const auto each = [&](const auto& body) {
      for (Rank step = 0; step < c.ranks; ++step) {
        part.first = step == 0, part.keys.rank = (r + c.ranks - step) % c.ranks;
        body(taken(g.k, part.keys, narrow), taken(g.v, part.keys, narrow));
      }
    };
    each([&](const Rows& k, const Rows& v) {
      attention_part(DType::f32, part, q.data(), k.data(), v.data(), out.data(), logs.data(), scratch.data(), threads,
                     c.dropout, first_seen);
    });
    attention_offsets(DType::f32, part.shape, dout.data(), out.data(), offsets.data());
    each([&](const Rows& k, const Rows& v) {
      Rows dk(k.size()), dv(k.size());
      attention_part_gradient(DType::f32, part, dout.data(), q.data(), k.data(), v.data(), logs.data(), offsets.data(),
                              dq.data(), dk.data(), dv.data(), scratch.data(), threads, c.dropout, first_seen);
      add(m.dk, dk, part.keys, narrow), add(m.dv, dv, part.keys, narrow);
    });
    add(m.out, out, part.queries, wide), add(m.dq, dq, part.queries, wide);
  }
  return m;
}

std::vector<Case> cases() {
  const AttentionShape plain{.sequence = 48, .batch = 2, .heads = 4, .kv_heads = 2, .head_size = 8, .causal = true};
  AttentionShape longer = plain, window = plain, narrow = plain, open = plain;
  longer.sequence = 420, longer.batch = 1;  // stretches of more than a block of queries
  window.window = 10, narrow.window = 1;
  open.causal = false;
  Case cut{"documents", longer, 3}, drop{"dropout", plain, 2};
  for (std::int32_t i = 0; i < 420; ++i) cut.starts.push_back(i < 7 ? 0 : i < 130 ? 7 : i < 131 ? 130 : 131);
  drop.dropout = {.rate = 0.3, .key = kernels::random_key({.seed = 5}), .first_head = 1, .heads = 6};
  return {{"two ranks", plain, 2},
          {"four ranks", plain, 4},
          {"three ranks", longer, 3},
          {"a window", window, 4},
          {"only itself", narrow, 2},
          {"no mask", open, 3},
          cut,
          drop};
}

TEST(ContextAttention, IsThatOfAllKeysAtOnce) {
  for (const Case& c : cases()) {
    const Given given(c.shape);
    const Made expected = whole(c, given), got = in_parts(c, given, 1);
    const auto near = [&](const Rows& a, const Rows& b, const char* what) {
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-5) << c.name << ", " << what << " " << i;
    };
    near(got.out, expected.out, "out"), near(got.dq, expected.dq, "dq");
    near(got.dk, expected.dk, "dk"), near(got.dv, expected.dv, "dv");
  }
}

TEST(ContextAttention, HasTheSameBitsWithAnyThreads) {
  for (const Case& c : cases()) {
    const Given given(c.shape);
    const Made one = in_parts(c, given, 1), four = in_parts(c, given, 4);
    EXPECT_EQ(one.out, four.out) << c.name;
    EXPECT_EQ(one.dq, four.dq) << c.name;
    EXPECT_EQ(one.dk, four.dk) << c.name;
    EXPECT_EQ(one.dv, four.dv) << c.name;
  }
}

// Every position is on one rank, and under a causal mask all ranks see the same number of keys.
TEST(ContextAttention, RanksHaveAsMuchToDo) {
  for (Rank ranks : {1, 2, 3, 8}) {
    const std::size_t positions = 16 * static_cast<std::size_t>(ranks);
    std::vector<int> times(positions, 0);
    for (Rank r = 0; r < ranks; ++r) {
      const SequencePart part{positions, ranks, r};
      ASSERT_EQ(part.count(), 16U);
      std::size_t seen = 0;
      for (std::size_t i = 0; i < part.count(); ++i) {
        const std::size_t position = part.position(i);
        ++times[position], seen += position + 1;
        EXPECT_TRUE(i == 0 || position > part.position(i - 1));
      }
      EXPECT_EQ(seen, 8 * (positions + 1)) << ranks << " ranks, rank " << r;
    }
    EXPECT_EQ(times, std::vector<int>(positions, 1));
  }
}

}  // namespace
}  // namespace trellis::train
