#include "train/layers/attention.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "kernels/layers/rotary.h"
#include "kernels/types/fnv1a.h"
#include "train/layers/arithmetic.h"
#include "train/layers/attention/accelerator_arrays.h"
#include "train/layers/attention/attention_core.h"
#include "train/layers/attention/context_attention.h"
#include "train/layers/head_share.h"
#include "train/layers/rope.h"

namespace trellis::train {

class Attention::Share {
 public:
  Share(Writer&, Parameters&, const std::string& name, const AttentionOptions&);
  TensorId forward(Writer&, TensorId x, Saved&) const;
  TensorId backward(Writer&, TensorId dy, const Saved&) const;

 private:
  struct Angles;
  struct Dropping {
    double rate;
    std::uint64_t seed, site;
    std::size_t first_head, heads;
    ProbabilityDropout at(const StepInputs&) const;
  };
  Dropping dropping(const Saved&) const;
  std::string name_;
  schedule::OperationShape core_shape(const char* kind, DType) const;
  TensorId core(Writer&, Saved&) const;
  std::array<TensorId, 3> core_gradient(Writer&, TensorId dout, TensorId out, const Saved&) const;
  TensorId cached_core(Writer&, const Saved&) const;
  void turn(Writer&, TensorId, std::size_t heads, bool back) const;

  AttentionOptions options_;
  DType type_;  // of parameters
  HeadShare share_;
  AttentionShape shape_;
  SequencePart part_;  // the positions that this rank has
  ColumnParallel qkv_;
  RowParallel output_;
  std::optional<Norm> q_norm_, k_norm_;
  TensorId keys_ = no_tensor, values_ = no_tensor;  // of all positions so far
  std::shared_ptr<Angles> angles_;
};

ProbabilityDropout Attention::Share::Dropping::at(const StepInputs& now) const {
  return {rate, kernels::random_key({.seed = seed, .step = static_cast<std::uint64_t>(now.step), .tensor = site}),
          first_head, heads};
}

// Cosines and sines of all positions that may come. Computed when first needed: laying out a step does not need them.
struct Attention::Share::Angles {
  std::once_flag made;
  std::vector<float> cosines, sines;
  std::vector<std::int32_t> positions;  // by row

  static std::size_t positions_of(const AttentionOptions& o) { return o.cached > 0 ? o.cached : o.sequence; }

  void make(const AttentionOptions& o, SequencePart part) {
    std::call_once(made, [&] {
      if (o.cached > 0) part.whole = o.cached;
      const std::size_t count = positions_of(o);
      cosines.resize(count * o.rope.turned / 2), sines.resize(cosines.size());
      kernels::rotary_table(cosines.data(), sines.data(), 0, count, rope_frequencies(o.rope, count));
      const double factor = rope_factor(o.rope);
      for (auto* const table : {&cosines, &sines})
        for (float& value : *table) value = static_cast<float>(factor * static_cast<double>(value));
      for (std::size_t s = 0; s < part.count(); ++s)
        for (std::size_t b = 0; b < o.batch; ++b) positions.push_back(static_cast<std::int32_t>(part.position(s)));
    });
  }
};

namespace {

TensorPart elements(std::size_t first, std::size_t count, const AttentionOptions& o) {
  return {.first = first * o.head_size, .count = count * o.head_size};
}

std::vector<Output> outputs(const std::string& name, const AttentionOptions& o, const HeadShare& s) {
  const auto full = [&](int i) { return name + "." + o.names[i]; };
  const TensorPart q = elements(s.first, s.count, o);
  TensorPart kv = elements(s.kv_first, s.kv_count, o);
  kv.copies = s.copies, kv.first_copy = s.first_copy;
  return {{.name = full(0), .outputs = o.heads.heads * o.head_size, .part = q},
          {.name = full(1), .outputs = o.heads.kv_heads * o.head_size, .part = kv},
          {.name = full(2), .outputs = o.heads.kv_heads * o.head_size, .part = kv}};
}

std::vector<TensorId> with_starts(std::vector<TensorId> reads, const Attention::Saved& s) {
  if (s.starts != no_tensor) reads.push_back(s.starts);
  return reads;
}

const std::int32_t* starts_of(const Memory& at, const Attention::Saved& s) {
  return s.starts == no_tensor ? nullptr : at.as<std::int32_t>(s.starts);
}

ContextAttention over_context(const AttentionOptions& o, const AttentionShape& shape, const SequencePart& part) {
  return {.shape = shape, .own = part, .ring = o.ring, .flash = o.flash, .dropout = o.dropout};
}

LinearOptions of_inputs(LinearOptions o, bool bias) {
  o.bias = o.bias || bias;
  return o;
}

}  // namespace

Attention::Share::Share(Writer& w, Parameters& parameters, const std::string& name, const AttentionOptions& o)
    : name_(name),
      options_(o),
      type_(parameters.types().value),
      share_(head_share(o.heads, w.shape().tensor, w.place().tensor, o.wiring)),
      part_(sequence_part(o.sequence, w.shape(), w.place())),
      qkv_(w, parameters, o.hidden, outputs(name, o, share_), of_inputs(o.linear, o.qkv_bias)),
      output_(w, parameters, name + "." + o.names[3], o.heads.heads * o.head_size, o.hidden,
              o.linear.with_deviation(o.output_deviation), elements(share_.first, share_.count, o)),
      angles_(std::make_shared<Angles>()) {
  shape_ = {.sequence = part_.count(),
            .batch = o.batch,
            .heads = share_.count,
            .kv_heads = share_.kv_count,
            .head_size = o.head_size,
            .causal = o.causal,
            .window = o.window};
  if (o.cached > 0) {
    const auto cache = [&](const char* what) {
      const DType type = o.linear.narrow ? DType::bf16 : type_;
      return w.tensor(name + what, type, o.cached * o.batch, share_.kv_count * o.head_size, Category::parameter);
    };
    keys_ = cache(".cached_keys"), values_ = cache(".cached_values");
  }
  if (!o.qk_norm) return;
  const bool partial = w.shape().tensor > 1;
  q_norm_.emplace(w, parameters, Norm::Kind::rms, name + ".q_norm", o.head_size, o.norm_epsilon, partial);
  k_norm_.emplace(w, parameters, Norm::Kind::rms, name + ".k_norm", o.head_size, o.norm_epsilon, partial);
}

namespace {

// Applies the norm, if there is one, in the type of its weights. Under autocast, x comes from a product in a narrower
// type: it is widened for the norm, and the result is narrowed again.
TensorId normed(Writer& w, const std::optional<Norm>& norm, const char* name, TensorId x, DType wide,
                Norm::Saved& saved) {
  if (!norm) return x;
  const Writer::Scope scope(w, name);
  return cast_to(w, "narrowed", norm->forward(w, cast_to(w, "widened", x, wide), saved), w.tensor(x).type);
}

TensorId norm_gradient(Writer& w, const std::optional<Norm>& norm, const char* name, TensorId dy,
                       const Norm::Saved& saved) {
  if (!norm) return dy;
  const Writer::Scope scope(w, name);
  const TensorId wide = cast_to(w, "widened", dy, w.tensor(saved.x).type);
  return cast_to(w, "narrowed", norm->backward(w, wide, saved), w.tensor(dy).type);
}

}  // namespace

void Attention::Share::turn(Writer& w, TensorId t, std::size_t heads, bool back) const {
  if (options_.rope.turned == 0) return;
  const DType type = w.tensor(t).type;
  const kernels::RotaryShape shape{shape_.rows(), heads, options_.head_size, options_.rope.turned,
                                   heads * options_.head_size};
  w.compute(back ? "turn_back" : "rotary", {t}, {t}, 3.0 * static_cast<double>(w.tensor(t).elements()),
            fused_over("rotary", w.tensor(t)),
            [=, a = angles_, o = options_, part = part_](const Memory& at, const StepInputs& now) {
              a->make(o, part);
              const std::size_t first = o.cached > 0 ? static_cast<std::size_t>(now.step) * o.batch : 0;
              kernels::rotary(type, at.at(t), at.at(t), shape,
                              {a->cosines.data(), a->sines.data(), Angles::positions_of(o)},
                              {.backward = back, .positions = a->positions.data() + first, .threads = at.threads()});
            });
}

// What the dropout's random key is made of, except for the step's number, which operations add when they run.
Attention::Share::Dropping Attention::Share::dropping(const Saved& s) const {
  return {options_.dropout, options_.seed, kernels::fnv1a(name_ + ".probabilities") + s.number, share_.first,
          options_.heads.heads};
}

schedule::OperationShape Attention::Share::core_shape(const char* kind, DType type) const {
  return over_context(options_, shape_, part_).operation(kind, type, 1);
}

TensorId Attention::Share::core(Writer& w, Saved& s) const {
  if (part_.ranks > 1)
    return over_context(options_, shape_, part_)
        .forward(w, {s.q, s.k, s.v, s.starts, [d = dropping(s)](const StepInputs& now) { return d.at(now); }}, s.core);
  const Tensor like = w.tensor(s.q);
  const TensorId out = w.tensor("attended", like.type, like.rows, like.columns);
  const TensorId scratch = w.tensor("scores", DType::f32, attention_scratch(shape_), 1, Category::scratch);
  const schedule::OperationShape priced = core_shape("attention", like.type);
  s.core.pairs = {accelerator_arrays(w, priced, like.type, PairArrays::kept)};
  std::vector<TensorId> writes{out, scratch};
  writes.insert(writes.end(), s.core.pairs[0].begin(), s.core.pairs[0].end());
  w.compute("attention", with_starts({s.q, s.k, s.v}, s), std::move(writes), shape_.flops(), priced,
            [=, s = s, type = like.type, shape = shape_, d = dropping(s)](const Memory& at, const StepInputs& now) {
              attention(type, shape, at.at(s.q), at.at(s.k), at.at(s.v), at.at(out), at.as<float>(scratch),
                        at.threads(), d.at(now), starts_of(at, s));
            });
  return out;
}

// Adds this run's keys and values to the cache, which has those of earlier runs, and attends to all of them.
TensorId Attention::Share::cached_core(Writer& w, const Saved& s) const {
  const Tensor like = w.tensor(s.q), kv = w.tensor(s.k);
  for (const auto& [from, to] : {std::pair{s.k, keys_}, {s.v, values_}})
    w.compute("keep", {from, to}, {to}, 0, shape_over("copy", kv),
              [=, from = from, to = to, bytes = kv.bytes(), row = shape_.batch * kv.bytes() / kv.rows](
                  const Memory& at, const StepInputs& now) {
                std::memcpy(at.as<std::byte>(to) + static_cast<std::size_t>(now.step) * row, at.at(from), bytes);
              });
  AttentionShape most = shape_;
  most.before = options_.cached - shape_.sequence;
  const TensorId out = w.tensor("attended", like.type, like.rows, like.columns);
  const TensorId scratch = w.tensor("scores", DType::f32, attention_scratch(most), 1, Category::scratch);
  w.compute("attention", {s.q, keys_, values_}, {out, scratch}, shape_.flops(), core_shape("attention", like.type),
            [=, type = like.type, shape = shape_, k = keys_, v = values_](const Memory& at, const StepInputs& now) {
              AttentionShape here = shape;
              here.before = static_cast<std::size_t>(now.step);
              attention(type, here, at.at(s.q), at.at(k), at.at(v), at.at(out), at.as<float>(scratch), at.threads());
            });
  return out;
}

TensorId Attention::Share::forward(Writer& w, TensorId x, Saved& saved) const {
  const auto qkv = qkv_.forward(w, x);
  saved = {.x = x, .q = qkv[0], .k = qkv[1], .v = qkv[2], .number = saved.number, .starts = saved.starts};
  saved.q = normed(w, q_norm_, "q_norm", saved.q, type_, saved.q_norm);
  saved.k = normed(w, k_norm_, "k_norm", saved.k, type_, saved.k_norm);
  turn(w, saved.q, shape_.heads, false);
  turn(w, saved.k, shape_.kv_heads, false);
  const TensorId out = options_.cached > 0 ? cached_core(w, saved) : core(w, saved);
  if (options_.recompute_core)
    saved.core = {};
  else
    saved.out = out;
  return output_.forward(w, out);
}

std::array<TensorId, 3> Attention::Share::core_gradient(Writer& w, TensorId dout, TensorId out, const Saved& s) const {
  if (part_.ranks > 1)
    return over_context(options_, shape_, part_)
        .backward(w, {s.q, s.k, s.v, s.starts, [d = dropping(s)](const StepInputs& now) { return d.at(now); }}, dout,
                  out, s.core);
  const Tensor q = w.tensor(s.q), k = w.tensor(s.k);
  const TensorId dq = w.tensor("dq", q.type, q.rows, q.columns);
  const TensorId dk = w.tensor("dk", k.type, k.rows, k.columns), dv = w.tensor("dv", k.type, k.rows, k.columns);
  const TensorId scratch = w.tensor("scores", DType::f32, attention_gradient_scratch(shape_), 1, Category::scratch);
  const schedule::OperationShape priced = core_shape("attention_gradient", q.type);
  std::vector<TensorId> reads = with_starts({dout, s.q, s.k, s.v}, s);
  reads.insert(reads.end(), s.core.pairs[0].begin(), s.core.pairs[0].end());
  std::vector<TensorId> writes = accelerator_arrays(w, priced, q.type, PairArrays::of_backward);
  writes.insert(writes.begin(), {dq, dk, dv, scratch});
  w.compute("attention_gradient", std::move(reads), std::move(writes), 2.5 * shape_.flops(), priced,
            [=, type = q.type, shape = shape_, d = dropping(s)](const Memory& at, const StepInputs& now) {
              attention_gradient(type, shape, at.at(dout), at.at(s.q), at.at(s.k), at.at(s.v), at.at(dq), at.at(dk),
                                 at.at(dv), at.as<float>(scratch), at.threads(), d.at(now), starts_of(at, s));
            });
  return {dq, dk, dv};
}

TensorId Attention::Share::backward(Writer& w, TensorId dy, const Saved& saved) const {
  Saved s = saved;
  if (s.out == no_tensor) {
    const Writer::For what(w, Phase::recompute);
    s.out = core(w, s);
  }
  auto [dq, dk, dv] = core_gradient(w, output_.backward(w, dy, s.out), s.out, s);
  turn(w, dq, shape_.heads, true);
  turn(w, dk, shape_.kv_heads, true);
  // The norm's gradient is linear, so it may be taken of each copy's part before the copies' parts are summed.
  dq = norm_gradient(w, q_norm_, "q_norm", dq, s.q_norm);
  dk = norm_gradient(w, k_norm_, "k_norm", dk, s.k_norm);
  if (share_.copies > 1)
    for (TensorId* t : {&dk, &dv}) {
      const TensorId wide = cast_to(w, "widened", *t, DType::f32);
      w.all_reduce("sum_copies", Axis::kv, wide);
      *t = cast_to(w, "narrowed", wide, w.tensor(s.q).type);
    }
  return qkv_.backward(w, {dq, dk, dv}, s.x);
}

Attention::Attention(Writer& w, Parameters& parameters, const std::string& name, const AttentionOptions& o)
    : share_(std::make_shared<Share>(w, parameters, name, o)) {}

TensorId Attention::forward(Writer& w, TensorId x, Saved& saved) const { return share_->forward(w, x, saved); }

TensorId Attention::backward(Writer& w, TensorId dy, const Saved& saved) const {
  return share_->backward(w, dy, saved);
}

}  // namespace trellis::train
