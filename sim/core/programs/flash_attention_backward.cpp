#include <cmath>

#include "sim/core/program/emit_instructions.h"
#include "sim/core/programs/attention.h"
#include "sim/core/programs/rotating_tiles.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/programs/tiling.h"

// The gradients of attention from those of o, with o and lse from flash_attention: 512 keys at a time against all
// queries that see them; the powers are recomputed. For a block, with p = e^(scale q^T k - lse) and share = the row
// sums of do o: dv += p^T do, ds = scale p (do v^T - share), dk += ds^T q, dq += ds k.
namespace trellis::sim::core {
namespace {

using attention::AttentionSizes;
using attention::head_size;
using attention::lanes;

constexpr std::int64_t tile = 512;

struct Step {
  std::int64_t head, first, count, query, seen;  // the first `seen` of the tile's keys are seen by all or some queries
  bool diagonal, begins, ends;
  TensorOperand powers = {}, slopes = {}, values = {}, dk = {}, dv = {};
};

std::vector<Step> steps_of(const AttentionSizes& s) {
  std::vector<Step> steps;
  for (std::int64_t head = 0; head < s.heads; ++head)
    each_block(s.length, tile, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t query = s.causal ? first : 0; query < s.length; query += lanes) {
        const std::int64_t seen = s.causal ? std::min(count, query + lanes - first) : count;
        steps.push_back({head, first, count, query, seen, s.causal && query < first + count,
                         query == (s.causal ? first : 0), query + lanes == s.length});
      }
    });
  return steps;
}

class Kernel {
 public:
  Kernel(ProgramBuilder& b, const AttentionSizes& s)
      : b_(b),
        s_(s),
        q_(b.input("q", s.type, s.heads * head_size, s.length)),
        k_(b.input("k", s.type, s.heads * head_size, s.length)),
        v_(b.input("v", s.type, s.heads * s.length, head_size)),
        o_(b.input("o", s.type, s.heads * s.length, head_size)),
        do_(b.input("do", s.type, s.heads * s.length, head_size)),
        lse_(b.input("lse", DType::f32, s.heads * lanes, s.length / lanes)),
        dq_(b.output("dq", s.type, s.heads * s.length, head_size)),
        dk_(b.output("dk", s.type, s.heads * s.length, head_size)),
        dv_(b.output("dv", s.type, s.heads * s.length, head_size)),
        mask_(s.causal ? attention::mask(b) : TensorOperand{}),
        work_(b, "work", s.type, lanes, tile, 4),
        scratch_(b, "scratch", DType::f32, lanes, tile, 2),
        results_(b, "result", s.type, lanes, tile, 2),
        scores_(b, "scores", DType::f32, lanes, tile, 2, MemorySpace::psum),
        values_(b, "values", DType::f32, lanes, tile, 2, MemorySpace::psum),
        turning_(b, "turning", s.type, lanes, tile, 1, MemorySpace::psum),
        products_(b, "product", DType::f32, lanes, tile, 3, MemorySpace::psum),
        powers_(b, "powers", s.type, lanes, tile, 2),
        slopes_(b, "slopes", s.type, lanes, tile, 2),
        turned_(b, "turned", s.type, lanes, tile, 2),
        dks_(b, "dk_sum", DType::f32, lanes, tile, 2),
        dvs_(b, "dv_sum", DType::f32, lanes, tile, 2) {
    const auto all = [&](std::string_view name) { return b.tile(std::string(name), s.type, lanes, s.length); };
    q_columns_ = all("q_columns"), k_columns_ = all("k_columns"), v_columns_ = all("v_columns"),
    do_columns_ = all("do_columns"), q_rows_ = all("q_rows"), k_rows_ = all("k_rows"), do_rows_ = all("do_rows");
    dq_sum_ = b.tile("dq_sum", DType::f32, lanes, s.length);
    shares_ = b.tile("shares", DType::f32, lanes, s.length / lanes);
    shifts_ = b.tile("shifts", DType::f32, lanes, s.length / lanes);
  }

  // The scores of a step begin before the gradients of the step before it are added up.
  void run() {
    std::vector<Step> steps = steps_of(s_);
    for (std::size_t i = 0; i <= steps.size(); ++i) {
      const bool fresh = i < steps.size() && steps[i].begins && steps[i].first == 0;
      if (fresh && i > 0) add(steps[i - 1]);
      if (fresh) begin_head(steps[i].head);
      if (i < steps.size()) score(steps[i]);
      if (i > 0 && !fresh) add(steps[i - 1]);
      if (i < steps.size()) slope(steps[i]);
    }
  }

 private:
  void begin_head(std::int64_t head);
  void flip(const TensorOperand& to, const TensorOperand& from, std::int64_t first, std::int64_t count);
  void score(Step&);
  void slope(Step&);
  void add(Step&);
  void accumulate(const TensorOperand& sum, const TensorOperand& stationary, const TensorOperand& rows, const Step&);
  void put(const TensorOperand& to, const TensorOperand& sum, std::int64_t row, std::int64_t count);

  ProgramBuilder& b_;
  const AttentionSizes s_;
  TensorOperand q_, k_, v_, o_, do_, lse_, dq_, dk_, dv_, mask_;
  TensorOperand q_columns_, k_columns_, v_columns_, do_columns_;  // a row for each element of the head
  TensorOperand q_rows_, k_rows_, do_rows_, dq_sum_;              // a row for each of 128 positions
  TensorOperand shares_, shifts_;
  RotatingTiles work_, scratch_, results_, scores_, values_, turning_, products_, powers_, slopes_, turned_, dks_, dvs_;
  TensorOperand dk_sum_, dv_sum_;  // of the step that began last
};

// Each 128 columns of `to` = those of `from`, transposed.
void Kernel::flip(const TensorOperand& to, const TensorOperand& from, std::int64_t first, std::int64_t count) {
  const TensorOperand bank = turning_.next().column_range(0, count);
  for (std::int64_t at = 0; at < count; at += lanes)
    transpose(b_, bank.column_range(at, lanes), from.column_range(first + at, lanes));
  copy(b_, to.column_range(first, count), bank, Engine::scalar);
}

void Kernel::begin_head(std::int64_t head) {
  load(b_, shifts_, lse_.row_range(head * lanes, lanes), Engine::scalar);
  tensor_scalar(b_, shifts_, shifts_, AluOp::multiply, -1.0);
  each_block(s_.length, tile, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t blocks = count / lanes, row = head * s_.length + first;
    const auto part = [&](const TensorOperand& o) { return o.column_range(first, count); };
    const auto rows = [&](const TensorOperand& to, const TensorOperand& from) {
      load(b_, to.shaped({blocks, head_size}), attention::interleaved(from, row, blocks));
    };
    load(b_, part(k_columns_), block_of(k_, head * head_size, head_size, first, count));
    load(b_, part(q_columns_), block_of(q_, head * head_size, head_size, first, count));
    const TensorOperand v = work_.next().column_range(0, count), o = work_.next().column_range(0, count);
    rows(v, v_);
    rows(part(do_rows_), do_);
    rows(o, o_);
    flip(part(k_rows_), part(k_columns_), 0, count);
    flip(part(q_rows_), part(q_columns_), 0, count);
    flip(part(v_columns_), v, 0, count);
    flip(part(do_columns_), part(do_rows_), 0, count);
    const TensorOperand both = scratch_.next().column_range(0, count);
    tensor_tensor(b_, both, o, AluOp::multiply, part(do_rows_));
    reduce(b_, shares_.column_range(first / lanes, blocks), both.shaped({blocks, head_size}), AluOp::add);
    core::fill(b_, part(dq_sum_), 0);
  });
}

void Kernel::score(Step& p) {
  if (p.begins) {
    dk_sum_ = dks_.next();
    dv_sum_ = dvs_.next();
    core::fill(b_, dk_sum_, 0);
    core::fill(b_, dv_sum_, 0);
  }
  p.dk = dk_sum_;
  p.dv = dv_sum_;
  const TensorOperand scores = scores_.next().column_range(0, p.seen);
  p.values = values_.next().column_range(0, p.seen);
  matmul(b_, scores, q_columns_.column_range(p.query, lanes), k_columns_.column_range(p.first, p.seen), false);
  matmul(b_, p.values, do_columns_.column_range(p.query, lanes), v_columns_.column_range(p.first, p.seen), false);
  if (p.diagonal) {
    const TensorOperand last = scores.column_range(p.seen - lanes, lanes);
    tensor_tensor(b_, last, last, AluOp::add, mask_);
  }
  p.powers = powers_.next().column_range(0, p.seen);
  b_.add("activation", Engine::scalar, {p.powers}, {scores, shifts_.column_range(p.query / lanes, 1)},
         {func(ActivationFunction::exp), number(Key::scale, attention::scale())});
}

void Kernel::slope(Step& p) {
  p.slopes = slopes_.next().column_range(0, p.seen);
  scalar_tensor_tensor(b_, p.slopes, p.values, AluOp::subtract, shares_.column_range(p.query / lanes, 1),
                       AluOp::multiply, p.powers);
}

// sum += stationary^T rows, 128 of its columns at a time.
void Kernel::accumulate(const TensorOperand& sum, const TensorOperand& stationary, const TensorOperand& rows,
                        const Step& p) {
  const TensorOperand product = products_.next().column_range(0, p.seen);
  for (std::int64_t at = 0; at < p.seen; at += lanes)
    matmul(b_, product.column_range(at, lanes), stationary.column_range(at, lanes), rows, false);
  const TensorOperand part = sum.column_range(0, p.seen);
  tensor_tensor(b_, part, part, AluOp::add, product);
}

void Kernel::add(Step& p) {
  accumulate(p.dv, p.powers, do_rows_.column_range(p.query, head_size), p);
  const TensorOperand turned = turned_.next().column_range(0, p.seen);
  flip(turned, p.slopes, 0, p.seen);
  accumulate(p.dk, p.slopes, q_rows_.column_range(p.query, head_size), p);
  const TensorOperand product = products_.next().column_range(0, head_size);
  for (std::int64_t at = 0; at < p.seen; at += lanes)
    matmul(b_, product, turned.column_range(at, lanes), k_rows_.column_range(p.first + at, head_size), at != 0);
  const TensorOperand sum = dq_sum_.column_range(p.query, head_size);
  tensor_tensor(b_, sum, sum, AluOp::add, product);
  if (!p.ends) return;
  put(dv_, p.dv, p.head * s_.length + p.first, p.count);
  tensor_scalar(b_, p.dk, p.dk, AluOp::multiply, attention::scale(), Engine::scalar);
  put(dk_, p.dk, p.head * s_.length + p.first, p.count);
  if (p.first + p.count < s_.length) return;
  each_block(s_.length, tile, [&](std::int64_t first, std::int64_t count) {
    const TensorOperand part = dq_sum_.column_range(first, count);
    tensor_scalar(b_, part, part, AluOp::multiply, attention::scale(), Engine::scalar);
    put(dq_, part, p.head * s_.length + first, count);
  });
}

void Kernel::put(const TensorOperand& to, const TensorOperand& sum, std::int64_t row, std::int64_t count) {
  const TensorOperand result = results_.next().column_range(0, count);
  copy(b_, result, sum.column_range(0, count), Engine::scalar);
  store(b_, attention::interleaved(to, row, count / lanes), result.shaped({count / lanes, head_size}));
}

NeuronCoreProgram build(const Arguments& a, const ChipSpec& chip) {
  ProgramBuilder b("flash_attention_backward", chip);
  Kernel(b, attention::sizes_of(a)).run();
  return b.finish();
}

// o and lse are what attention gives for q, k and v, rounded to their types.
void fill(const Arguments& a, CoreMemory& memory, std::uint64_t seed) {
  const AttentionSizes s = attention::sizes_of(a);
  for (const std::string_view name : {"q", "k", "v", "do"}) fill_normal(memory, name, s.type, seed);
  const attention::AttentionInputs in(s, memory);
  std::byte* const o = memory.hbm("o").data();
  for (std::int64_t head = 0; head < s.heads; ++head)
    for (std::int64_t query = 0; query < s.length; ++query) {
      const attention::ReferenceSoftmaxRow row = attention::row_of(in, head, query);
      for (std::int64_t d = 0; d < head_size; ++d) {
        double sum = 0;
        for (std::size_t key = 0; key < row.weights.size(); ++key)
          sum += row.weights[key] * in.value(head, static_cast<std::int64_t>(key), d);
        kernels::store(s.type, o + in.row(head, query, d) * kernels::size_of(s.type), sum);
      }
      const auto at = static_cast<std::size_t>((head * lanes + query % lanes) * (s.length / lanes) + query / lanes);
      memory.hbm_as<float>("lse")[at] = static_cast<float>(row.lse);
    }
}

struct Gradients {
  std::vector<BoundedReference> dq, dk, dv;
};

// Adds one query's part in f64, with error bounds. A power is off by the error of its exponent, the rounding of lse and
// of the type; do v^T and share by 130 roundings of their terms; ds by both, its 2 operations and its rounding to the
// type; a sum by the error of each term, and one rounding for every query or key.
void add_query(const attention::AttentionInputs& in, const std::vector<double>& slope, const std::vector<double>& o,
               std::int64_t head, std::int64_t query, Gradients& g) {
  const attention::ReferenceSoftmaxRow row = attention::row_of(in, head, query);
  const double sums = unit_f32 * static_cast<double>(in.sizes.length + 130), type = rounding_of(in.sizes.type);
  const double power_off = 2 * row.exponent_error + unit_f32 * (4 * std::abs(row.lse) + 8) + type;
  double share = 0, share_size = 0;
  for (std::int64_t d = 0; d < head_size; ++d) {
    share += slope[in.row(head, query, d)] * o[in.row(head, query, d)];
    share_size += std::abs(slope[in.row(head, query, d)] * o[in.row(head, query, d)]);
  }
  for (std::int64_t key = 0; key < static_cast<std::int64_t>(row.weights.size()); ++key) {
    const double p = row.weights[static_cast<std::size_t>(key)];
    double value = 0, size = 0;
    for (std::int64_t d = 0; d < head_size; ++d) {
      value += slope[in.row(head, query, d)] * in.value(head, key, d);
      size += std::abs(slope[in.row(head, query, d)] * in.value(head, key, d));
    }
    const double ds = p * (value - share) * attention::scale();
    const double ds_off = p * attention::scale() * (unit_f32 * 130 * (size + share_size)) +
                          std::abs(ds) * (power_off + type + 4 * unit_f32);
    const auto add = [&](BoundedReference& to, double factor, double other, double off) {
      to.value += factor * other;
      to.bound += std::abs(other) * (off * (1 + sums) + sums * std::abs(factor));
    };
    for (std::int64_t d = 0; d < head_size; ++d) {
      add(g.dv[in.row(head, key, d)], p, slope[in.row(head, query, d)], p * power_off);
      add(g.dk[in.row(head, key, d)], ds, in.query(head, query, d), ds_off);
      add(g.dq[in.row(head, query, d)], ds, in.key(head, key, d), ds_off);
    }
  }
}

std::vector<Comparison> compare(const Arguments& a, CoreMemory& memory) {
  const AttentionSizes s = attention::sizes_of(a);
  const attention::AttentionInputs in(s, memory);
  const std::vector<double> slope = numbers_of(memory, "do", s.type), o = numbers_of(memory, "o", s.type);
  const std::vector<BoundedReference> none(slope.size());
  Gradients g{none, none, none};
  for (std::int64_t head = 0; head < s.heads; ++head)
    for (std::int64_t query = 0; query < s.length; ++query) add_query(in, slope, o, head, query, g);
  return {compare_bounded("dq", s.type, memory.hbm("dq").data(), g.dq),
          compare_bounded("dk", s.type, memory.hbm("dk").data(), g.dk),
          compare_bounded("dv", s.type, memory.hbm("dv").data(), g.dv)};
}

const RegisteredProgram registered({.name = "flash_attention_backward",
                                    .summary = "the gradients of attention, head size 128",
                                    .parameters = {{"seq_len", "a multiple of 128", 4096, {}},
                                                   {"heads", "how many", 1, {}},
                                                   {"type", "of all but lse", 0, {"bf16", "f32"}},
                                                   {"causal", "a query sees no later key", 0, {"no", "yes"}}},
                                    .build = build,
                                    .fill = fill,
                                    .compare = compare});

}  // namespace
}  // namespace trellis::sim::core
