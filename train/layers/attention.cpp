#include "train/layers/attention.h"

#include <fmt/format.h>

#include <memory>
#include <mutex>

#include "kernels/layers/rotary.h"
#include "kernels/types/fnv1a.h"
#include "train/layers/arithmetic.h"

namespace trellis::train {

ProbabilityDropout Attention::Dropping::at(const StepInputs& now) const {
  return {rate, kernels::random_key({.seed = seed, .step = static_cast<std::uint64_t>(now.step), .tensor = site}),
          first_head, heads};
}

// Made when it is first needed: laying a step out needs none.
struct Attention::Angles {
  std::once_flag made;
  std::vector<float> cosines, sines;
  std::vector<std::int32_t> positions;  // by row

  void make(const AttentionOptions& o) {
    std::call_once(made, [&] {
      cosines.resize(o.sequence * o.turned / 2), sines.resize(cosines.size());
      kernels::rotary_table(cosines.data(), sines.data(), 0, o.sequence, o.turned, o.rotary_base);
      for (std::size_t s = 0; s < o.sequence; ++s)
        for (std::size_t b = 0; b < o.batch; ++b) positions.push_back(static_cast<std::int32_t>(s));
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

LinearOptions with_deviation(LinearOptions o, double deviation) {
  o.deviation = deviation;
  return o;
}

}  // namespace

Attention::Attention(Writer& w, Parameters& parameters, const std::string& name, const AttentionOptions& o)
    : name_(name),
      options_(o),
      share_(head_share(o.heads, w.shape().tensor, w.place().tensor, o.wiring)),
      qkv_(w, parameters, o.hidden, outputs(name, o, share_), o.linear),
      output_(w, parameters, name + "." + o.names[3], o.heads.heads * o.head_size, o.hidden,
              with_deviation(o.linear, o.output_deviation), elements(share_.first, share_.count, o)),
      angles_(std::make_shared<Angles>()) {
  shape_ = {.sequence = o.sequence,
            .batch = o.batch,
            .heads = share_.count,
            .kv_heads = share_.kv_count,
            .head_size = o.head_size,
            .causal = o.causal};
}

void Attention::turn(Writer& w, TensorId t, std::size_t heads, bool back) const {
  if (options_.turned == 0) return;
  const DType type = w.tensor(t).type;
  const kernels::RotaryShape shape{shape_.rows(), heads, options_.head_size, options_.turned,
                                   heads * options_.head_size};
  w.compute(back ? "turn_back" : "rotary", {t}, {t}, 3.0 * static_cast<double>(w.tensor(t).elements()),
            fused_over("rotary", w.tensor(t)), [=, a = angles_, o = options_](const Memory& at, const StepInputs&) {
              a->make(o);
              kernels::rotary(type, at.at(t), at.at(t), shape, {a->cosines.data(), a->sines.data(), o.sequence},
                              {.backward = back, .positions = a->positions.data(), .threads = at.threads()});
            });
}

// The key without a step: operations add it when they run.
Attention::Dropping Attention::dropping(const Saved& s) const {
  return {options_.dropout, options_.seed, kernels::fnv1a(name_ + ".probabilities") + s.number, share_.first,
          options_.heads.heads};
}

schedule::OperationShape Attention::core_shape(const char* kind, DType type) const {
  return {.kind = kind,
          .rows = shape_.sequence,
          .columns = shape_.sequence,
          .inner = shape_.head_size,
          .batch = shape_.batch * shape_.heads,
          .shared = shape_.heads / shape_.kv_heads,
          .type = std::string(kernels::name(type)),
          .causal = shape_.causal,
          .flash = options_.flash,
          .dropout = options_.dropout > 0};
}

TensorId Attention::core(Writer& w, const Saved& s) const {
  const Tensor like = w.tensor(s.q);
  const TensorId out = w.tensor("attended", like.type, like.rows, like.columns);
  const TensorId scratch = w.tensor("scores", DType::f32, attention_scratch(shape_), 1, Category::scratch);
  w.compute("attention", with_starts({s.q, s.k, s.v}, s), {out, scratch}, shape_.flops(),
            core_shape("attention", like.type),
            [=, type = like.type, shape = shape_, d = dropping(s)](const Memory& at, const StepInputs& now) {
              attention(type, shape, at.at(s.q), at.at(s.k), at.at(s.v), at.at(out), at.as<float>(scratch),
                        at.threads(), d.at(now), starts_of(at, s));
            });
  return out;
}

TensorId Attention::forward(Writer& w, TensorId x, Saved& saved) const {
  const auto qkv = qkv_.forward(w, x);
  saved = {x, qkv[0], qkv[1], qkv[2], no_tensor, saved.number, saved.starts};
  turn(w, saved.q, shape_.heads, false);
  turn(w, saved.k, shape_.kv_heads, false);
  const TensorId out = core(w, saved);
  if (!options_.recompute_core) saved.out = out;
  return output_.forward(w, out);
}

TensorId Attention::backward(Writer& w, TensorId dy, const Saved& s) const {
  TensorId out = s.out;
  if (out == no_tensor) {
    const Writer::For what(w, Phase::recompute);
    out = core(w, s);
  }
  const TensorId dout = output_.backward(w, dy, out);
  const Tensor q = w.tensor(s.q), k = w.tensor(s.k);
  const TensorId dq = w.tensor("dq", q.type, q.rows, q.columns);
  TensorId dk = w.tensor("dk", k.type, k.rows, k.columns), dv = w.tensor("dv", k.type, k.rows, k.columns);
  const TensorId scratch = w.tensor("scores", DType::f32, attention_gradient_scratch(shape_), 1, Category::scratch);
  w.compute("attention_gradient", with_starts({dout, s.q, s.k, s.v}, s), {dq, dk, dv, scratch}, 2.5 * shape_.flops(),
            core_shape("attention_gradient", q.type),
            [=, type = q.type, shape = shape_, d = dropping(s)](const Memory& at, const StepInputs& now) {
              attention_gradient(type, shape, at.at(dout), at.at(s.q), at.at(s.k), at.at(s.v), at.at(dq), at.at(dk),
                                 at.at(dv), at.as<float>(scratch), at.threads(), d.at(now), starts_of(at, s));
            });
  turn(w, dq, shape_.heads, true);
  turn(w, dk, shape_.kv_heads, true);
  if (share_.copies > 1)
    for (TensorId* t : {&dk, &dv}) {
      const TensorId wide = cast_to(w, "widened", *t, DType::f32);
      w.all_reduce("sum_copies", Axis::kv, wide);
      *t = cast_to(w, "narrowed", wide, q.type);
    }
  return qkv_.backward(w, {dq, dk, dv}, s.x);
}

}  // namespace trellis::train
