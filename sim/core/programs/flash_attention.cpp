#include <array>
#include <cmath>

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/attention.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"
#include "text/refuse.h"

// o = softmax(q^T k / sqrt(128)) v of each head, one tile of keys at a time. For each query it keeps the largest
// exponent and the sum of powers so far. lse, their logarithm, is kept for the gradient.
namespace trellis::sim::core {
namespace {

using attention::AttentionSizes;
using attention::head_size;
using attention::lanes;

constexpr std::int64_t bank = 512, under_way = 5;

// 128 queries against a tile of keys.
struct Step {
  std::int64_t head, query, first, count;  // first, count: the keys in the tile
  bool diagonal, begins, ends;
  TensorOperand scores = {}, powers = {}, most = {}, shift = {}, shrink = {}, product = {};
  std::vector<TensorOperand> turned = {};
};

std::vector<Step> steps_of(const AttentionSizes& s, std::int64_t tile) {
  std::vector<Step> steps;
  for (std::int64_t head = 0; head < s.heads; ++head)
    for (std::int64_t query = 0; query < s.length; query += lanes) {
      const std::int64_t seen = s.causal ? query + lanes : s.length;
      each_block(seen, tile, [&](std::int64_t first, std::int64_t count) {
        const bool ends = first + count == seen;
        steps.push_back({head, query, first, count, s.causal && ends, first == 0, ends});
      });
    }
  return steps;
}

class Kernel {
 public:
  Kernel(ProgramBuilder& b, const AttentionSizes& s, std::int64_t tile)
      : b_(b),
        s_(s),
        tile_(tile),
        q_(b.input("q", s.type, s.heads * head_size, s.length)),
        k_(b.input("k", s.type, s.heads * head_size, s.length)),
        v_(b.input("v", s.type, s.heads * s.length, head_size)),
        o_(b.output("o", s.type, s.heads * s.length, head_size)),
        lse_(b.output("lse", DType::f32, s.heads * lanes, s.length / lanes)),
        mask_(s.causal ? attention::mask(b) : TensorOperand{}),
        queries_(b, "queries", s.type, head_size, s.length, copies()),
        keys_(b, "keys", s.type, head_size, s.length, copies()),
        values_(b, "values", s.type, lanes, s.length, copies()),
        mosts_(b, "mosts", DType::f32, lanes, s.length / lanes, under_way),
        sums_(b, "sums", DType::f32, lanes, s.length / lanes, under_way),
        columns_(b, "column", DType::f32, lanes, 1, 48),
        powers_(b, "powers", s.type, lanes, tile, 3),
        turned_(b, "turned", s.type, lanes, bank, 5),
        sums_of_values_(b, "acc", DType::f32, lanes, head_size, 2),
        results_(b, "result", s.type, lanes, head_size, 2),
        scores_(b, "scores", DType::f32, lanes, tile, 2, MemorySpace::psum),
        turning_(b, "turning", s.type, lanes, bank, 2, MemorySpace::psum),
        products_(b, "product", DType::f32, lanes, head_size, 2, MemorySpace::psum) {}

  // A software pipeline of five steps, so that no engine waits for what it or another one has just begun. While the
  // scores of one step are made, the powers of the step two before are transposed, the values of the step three before
  // are weighted, and those of the step four before are added up.
  void run() {
    std::vector<Step> steps = steps_of(s_, tile_);
    const auto at = [&](std::size_t i) { return i < steps.size() ? &steps[i] : nullptr; };
    for (std::size_t i = 0; i + 1 < steps.size() + under_way; ++i) {
      if (Step* const now = at(i)) score(*now);
      if (Step* const then = at(i - 3)) weigh(*then);
      if (Step* const then = at(i - 2)) turn(*then);
      if (Step* const now = at(i)) most(*now, at(i - 1));
      if (Step* const then = at(i - 4)) add(*then);
      if (Step* const now = at(i)) raise(*now);
    }
  }

 private:
  // How many tiles each input of a head rotates through: it is loaded into the next tile while the three steps before,
  // perhaps of several other heads, may still read their inputs in other tiles.
  int copies() const {
    const std::int64_t steps = s_.length / lanes;
    return s_.heads > 1 ? static_cast<int>(1 + (3 + steps - 1) / steps) : 1;
  }
  void begin_head(std::int64_t head);
  void score(Step&);
  TensorOperand most_of(const Step&);
  void most(Step&, const Step* before);
  void raise(Step&);
  void turn(Step&);
  void weigh(const Step&);
  void add(Step&);
  void end_head(std::int64_t head);

  ProgramBuilder& b_;
  const AttentionSizes s_;
  const std::int64_t tile_;
  TensorOperand q_, k_, v_, o_, lse_, mask_;
  RotatingTiles queries_, keys_, values_, mosts_, sums_, columns_, powers_, turned_, sums_of_values_, results_;
  RotatingTiles scores_, turning_, products_;
  struct Head {
    TensorOperand queries, keys, values, mosts, sums;
  };
  std::array<Head, under_way> heads_;  // as many as there can be steps in flight
  TensorOperand so_far_, sum_so_far_;
};

void Kernel::begin_head(std::int64_t head) {
  Head& h = heads_[static_cast<std::size_t>(head % under_way)];
  h = {queries_.next(), keys_.next(), values_.next(), mosts_.next(), sums_.next()};
  each_block(s_.length, 1024, [&](std::int64_t first, std::int64_t count) {
    load(b_, h.keys.column_range(first, count), block_of(k_, head * head_size, head_size, first, count));
    load(b_, h.queries.column_range(first, count), block_of(q_, head * head_size, head_size, first, count),
         Engine::scalar);
    load(b_, h.values.column_range(first, count).shaped({count / lanes, head_size}),
         attention::interleaved(v_, head * s_.length + first, count / lanes), Engine::scalar);
  });
}

void Kernel::score(Step& p) {
  if (p.begins && p.query == 0) begin_head(p.head);
  const Head& h = heads_[static_cast<std::size_t>(p.head % under_way)];
  p.scores = scores_.next().column_range(0, p.count);
  each_block(p.count, bank, [&](std::int64_t first, std::int64_t count) {
    matmul(b_, p.scores.column_range(first, count), h.queries.column_range(p.query, lanes),
           h.keys.column_range(p.first + first, count), false);
  });
  if (p.diagonal) {
    const TensorOperand last = p.scores.column_range(p.count - lanes, lanes);
    tensor_tensor(b_, last, last, AluOp::add, mask_);
  }
  p.most = p.begins ? most_of(p) : columns_.next();
  reduce(b_, p.most, p.scores, AluOp::max);
}

// Where the largest score is stored: for a query's last tile, where lse will read it; else in a new column.
TensorOperand Kernel::most_of(const Step& p) {
  return p.ends ? heads_[static_cast<std::size_t>(p.head % under_way)].mosts.column_range(p.query / lanes, 1)
                : columns_.next();
}

// Joins the largest score of this tile with that of the query's earlier tiles.
void Kernel::most(Step& p, const Step* before) {
  if (p.begins) return;
  const TensorOperand own = p.most;
  p.most = most_of(p);
  tensor_tensor(b_, p.most, before->most, AluOp::max, own);
  p.shrink = before->most;
}

// Computes the powers of this tile, and the factor by which the earlier ones shrink.
void Kernel::raise(Step& p) {
  const Head& h = heads_[static_cast<std::size_t>(p.head % under_way)];
  const double scale = attention::scale();
  p.shift = columns_.next();
  tensor_scalar(b_, p.shift, p.most, AluOp::multiply, -scale);
  if (!p.begins) {
    const TensorOperand before = p.shrink;
    p.shrink = columns_.next();
    b_.add("activation", Engine::scalar, {p.shrink}, {before, p.shift},
           {func(ActivationFunction::exp), number(Key::scale, scale)});
  }
  p.powers = powers_.next().column_range(0, p.count);
  const TensorOperand kept = h.sums.column_range(p.query / lanes, 1);
  const TensorOperand own = p.begins && p.ends ? kept : columns_.next();
  b_.add("activation_reduce", Engine::scalar, {p.powers, own}, {p.scores, p.shift},
         {func(ActivationFunction::exp), number(Key::scale, scale)});
  const TensorOperand before = sum_so_far_;
  sum_so_far_ = p.begins ? own : p.ends ? kept : columns_.next();
  if (!p.begins) scalar_tensor_tensor(b_, sum_so_far_, before, AluOp::multiply, p.shrink, AluOp::add, own);
}

// Transposes the powers, so that they have a row for each key.
void Kernel::turn(Step& p) {
  each_block(p.count, bank, [&](std::int64_t first, std::int64_t count) {
    const TensorOperand turning = turning_.next().column_range(0, count),
                        turned = turned_.next().column_range(0, count);
    for (std::int64_t at = 0; at < count; at += lanes)
      transpose(b_, turning.column_range(at, lanes), p.powers.column_range(first + at, lanes));
    copy(b_, turned, turning, p.turned.size() % 2 == 0 ? Engine::vector : Engine::scalar);
    p.turned.push_back(turned);
  });
  p.product = products_.next();
}

void Kernel::weigh(const Step& p) {
  const Head& h = heads_[static_cast<std::size_t>(p.head % under_way)];
  for (std::int64_t at = 0; at < p.count; at += lanes)
    matmul(b_, p.product, p.turned[static_cast<std::size_t>(at / bank)].column_range(at % bank, lanes),
           h.values.column_range(p.first + at, head_size), at != 0);
}

void Kernel::add(Step& p) {
  const Head& h = heads_[static_cast<std::size_t>(p.head % under_way)];
  if (p.begins) {
    so_far_ = sums_of_values_.next();
    copy(b_, so_far_, p.product);
  } else {
    scalar_tensor_tensor(b_, so_far_, so_far_, AluOp::multiply, p.shrink, AluOp::add, p.product);
  }
  if (!p.ends) return;
  const TensorOperand &share = columns_.next(), &result = results_.next();
  b_.add("reciprocal", Engine::vector, {share}, {h.sums.column_range(p.query / lanes, 1)});
  tensor_scalar(b_, result, so_far_, AluOp::multiply, share);
  store(b_, o_.row_range(p.head * s_.length + p.query, lanes), result);
  if (p.query + lanes == s_.length) end_head(p.head);
}

// lse = log(sum) + scale most; query t 128 + p is at row p, column t.
void Kernel::end_head(std::int64_t head) {
  const Head& h = heads_[static_cast<std::size_t>(head % under_way)];
  activation(b_, h.sums, h.sums, ActivationFunction::log);
  b_.add("scalar_tensor_tensor", Engine::vector, {h.sums}, {h.mosts, h.sums},
         {alu(AluOp::multiply), number(Key::value, attention::scale()), alu(AluOp::add, Key::op1)});
  store(b_, lse_.row_range(head * lanes, lanes), h.sums);
}

std::int64_t tile_of(const Arguments& a, const AttentionSizes& s) {
  const std::int64_t tile = a.count("tile");
  if (tile % lanes != 0 || tile > 1024)
    text::refuse("flash_attention: tile={}; expected a multiple of 128, at most 1024", tile);
  return std::min(tile, s.length);
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("flash_attention", chip);
  const AttentionSizes s = attention::sizes_of(a);
  Kernel(b, s, tile_of(a, s)).run();
  return b.finish();
}

void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  for (const std::string_view name : {"q", "k", "v"}) fill_normal(memory, name, attention::sizes_of(a).type, seed);
}

// Compares with a reference in f64. A power is off by the error of its exponent, the rounding to the type and 4 units;
// the division cancels the common part. Every tile shrinks the earlier ones by a power, which is off as much, and a sum
// has a rounding for every key.
std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const AttentionSizes s = attention::sizes_of(a);
  const attention::AttentionInputs in(s, memory);
  const double tiles = static_cast<double>((s.length + tile_of(a, s) - 1) / tile_of(a, s));
  std::vector<BoundedReference> o, lse(static_cast<std::size_t>(s.heads * s.length));
  for (std::int64_t head = 0; head < s.heads; ++head)
    for (std::int64_t query = 0; query < s.length; ++query) {
      const attention::ReferenceSoftmaxRow row = attention::row_of(in, head, query);
      const double power = (1 + tiles) * (2 * row.exponent_error + 6 * unit_f32) + rounding_of(s.type),
                   off = power + unit_f32 * static_cast<double>(s.length + 4);
      for (std::int64_t d = 0; d < head_size; ++d) {
        BoundedReference sum;
        for (std::size_t key = 0; key < row.weights.size(); ++key) {
          const double term = row.weights[key] * in.value(head, static_cast<std::int64_t>(key), d);
          sum.value += term;
          sum.bound += std::abs(term) * 2 * off;
        }
        o.push_back(sum);
      }
      const auto at = static_cast<std::size_t>((head * lanes + query % lanes) * (s.length / lanes) + query / lanes);
      lse[at] = {row.lse, off + unit_f32 * 4 * std::abs(row.lse) + row.exponent_error};
    }
  return {compare_bounded("o", s.type, memory.hbm("o").data(), o),
          compare_bounded("lse", DType::f32, memory.hbm("lse").data(), lse)};
}

const RegisteredProgram registered({.name = "flash_attention",
                                    .summary = "attention by tiles of keys, head size 128",
                                    .parameters = {{"seq_len", "a multiple of 128", 4096, {}},
                                                   {"heads", "how many", 1, {}},
                                                   {"type", "of all but lse", 0, {"bf16", "f32"}},
                                                   {"causal", "a query sees no later key", 0, {"no", "yes"}},
                                                   {"tile", "keys at a time", 1024, {}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
