#include "train/update/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/optimizers/adamw.h"
#include "kernels/reduce/clip.h"
#include "kernels/reduce/dot.h"
#include "kernels/types/convert.h"
#include "train/update/exchange.h"

namespace trellis::train {
namespace {

// Sum of |x|^p, or the largest |x| where p is infinite, in f64 whatever the type.
double powers(DType type, const void* x, std::size_t n, double p, int threads) {
  if (p == 2) return kernels::sum_of_squares(type, x, n, threads);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double v = std::fabs(kernels::load(type, static_cast<const std::byte*>(x) + i * kernels::size_of(type)));
    if (std::isinf(p))
      sum = v > sum || std::isnan(v) ? v : sum;
    else
      sum += std::pow(v, p);
  }
  return sum;
}

// What gradients are multiplied by before anything else: with ZeRO-1 they are sums over the ranks.
double average(const Writer& w, const Config& c) { return c.strategy.zero1 ? 1.0 / w.shape().data : 1; }

void write_norm(Writer& w, const Config& c, const std::vector<ParameterState>& states, TensorId norm) {
  struct Term {
    TensorId gradient;
    DType type;
    std::size_t n;
    double share;
  };
  std::vector<Term> terms;
  std::vector<TensorId> reads;
  double flops = 0;
  for (const ParameterState& s : states)
    if (s.parameter->owner && !s.frozen()) {
      terms.push_back({s.gradient, w.tensor(s.gradient).type, s.slice.elements(), s.parameter->share});
      reads.push_back(s.gradient);
      flops += 2.0 * static_cast<double>(s.slice.elements());
    }
  const double p = c.optimizer.norm_type, scale = average(w, c);
  const auto join = std::isinf(p) ? kernels::Reduction::max : kernels::Reduction::sum;
  w.compute("squares", reads, {norm}, flops, [=](const Memory& at, const Moment&) {
    double sum = 0;
    for (const Term& t : terms) {
      const double part = powers(t.type, at.at(t.gradient), t.n, p, at.threads());
      if (std::isinf(p))
        sum = part > sum || std::isnan(part) ? part : sum;
      else
        sum += t.share * part;
    }
    *at.as<double>(norm) = sum;
  });
  if (w.shape().tensor > 1) w.all_reduce("norm_tensor", Axis::tensor, norm, join);
  if (w.shape().pipeline > 1) w.all_reduce("norm_pipeline", Axis::pipeline, norm, join);
  if (w.shape().data > 1 && c.strategy.zero1) w.all_reduce("norm_data", Axis::data, norm, join);
  w.compute("norm", {norm}, {norm}, 1, [=](const Memory& at, const Moment&) {
    double& n = *at.as<double>(norm);
    n = scale * (std::isinf(p) ? n : std::pow(n, 1 / p));
  });
}

kernels::Keep keep_of(Precision p) {
  switch (p) {
    case Precision::fp32:
    case Precision::autocast:
      return kernels::Keep::f32;
    case Precision::bf16_sr:
      return kernels::Keep::bf16_stochastic;
    case Precision::bf16:
      return kernels::Keep::bf16_nearest;
    case Precision::mixed:
    case Precision::mixed_sr:
      return kernels::Keep::f32_copy;
  }
  return kernels::Keep::f32;
}

struct AdamW {
  OptimizerConfig options;
  kernels::Keep keep;
  std::uint64_t seed;
  double average;
  ParameterState state;
  TensorId value, norm;
  DType type, gradient_type;

  void run(const Memory& at, const Moment& now) const {
    double factor = average;
    if (norm != no_tensor) {
      const double length = *at.as<double>(norm);
      if (!std::isfinite(length)) return;  // the caller sees the norm; parameters stay as they are
      factor *= kernels::clip_factor(length, options.max_norm);
    }
    const Slice& s = state.slice;
    // Elements that follow each other here and in the whole tensor are one call: random bits are counted in the whole.
    const bool lines = s.column_count == s.columns;
    const std::size_t calls = lines ? 1 : s.row_count, n = lines ? s.elements() : s.column_count;
    for (std::size_t i = 0; i < calls && n > 0; ++i) part(at, now, i * n, n, s.index(i, 0), factor);
  }

  void part(const Memory& at, const Moment& now, std::size_t first, std::size_t n, std::uint64_t index,
            double factor) const {
    const auto shift = [](void* p, DType t, std::size_t elements) {
      return static_cast<void*>(static_cast<std::byte*>(p) + elements * kernels::size_of(t));
    };
    void* const own = shift(at.at(value), type, state.first_element() + first);
    kernels::Weights weights{.keep = keep, .values = own};
    if (keep == kernels::Keep::f32_copy) weights.values = at.as<float>(state.master) + first, weights.copy = own;
    kernels::AdamWOptions o{
        .learning_rate = now.learning_rate,
        .beta1 = options.beta1,
        .beta2 = options.beta2,
        .epsilon = options.epsilon,
        .weight_decay = state.parameter->decays || options.norm_weight_decay ? options.weight_decay : 0,
        .step = static_cast<std::uint64_t>(now.step)};
    if (options.decay_last) o.order = kernels::AdamWOrder::decay_last;
    o.threads = at.threads();
    o.random = {.seed = seed,
                .step = static_cast<std::uint64_t>(now.step),
                .tensor = key_of(state.parameter->name),
                .first = index};
    kernels::adamw(weights, {gradient_type, shift(at.at(state.gradient), gradient_type, first), factor},
                   {DType::f32, at.as<float>(state.first) + first, at.as<float>(state.second) + first}, n, o);
  }
};

void write_adamw(Writer& w, const Config& c, const ParameterState& s, TensorId norm) {
  const Parameter& p = *s.parameter;
  const AdamW work{c.optimizer,
                   keep_of(c.precision),
                   c.seed,
                   average(w, c),
                   s,
                   p.value,
                   norm,
                   w.tensor(p.value).type,
                   w.tensor(s.gradient).type};
  std::vector<TensorId> reads{s.gradient, s.first, s.second, p.value}, writes{s.first, s.second, p.value};
  if (s.master != no_tensor) reads.push_back(s.master), writes.push_back(s.master);
  if (norm != no_tensor) reads.push_back(norm);
  w.compute("adamw", std::move(reads), std::move(writes), 12.0 * static_cast<double>(s.slice.elements()),
            [work](const Memory& at, const Moment& now) { work.run(at, now); });
}

}  // namespace

std::vector<ParameterBucket> parameter_buckets(Writer& w, const Config& c, const std::vector<ParameterState>& states,
                                               const std::vector<std::size_t>& ends) {
  std::vector<ParameterBucket> buckets;
  if (!c.strategy.zero1 || w.shape().data == 1) return buckets;
  const std::size_t cap = std::max<std::size_t>(1, bucket_bytes(c) / static_cast<std::size_t>(w.shape().data));
  std::size_t bytes = cap;  // the first one begins a bucket
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (std::ranges::find(ends, i) != ends.end()) bytes = cap;
    if (states[i].frozen()) continue;
    if (bytes >= cap) buckets.push_back({.ticket = w.ticket_ahead()}), bytes = 0;
    buckets.back().states.push_back(i);
    bytes += w.tensor(states[i].parameter->value).bytes();
  }
  return buckets;
}

void write_update(Writer& w, const Config& c, const std::vector<ParameterState>& states, TensorId norm,
                  const std::vector<ParameterBucket>& buckets) {
  const Writer::Scope scope(w, "update");
  if (norm != no_tensor) write_norm(w, c, states, norm);
  std::size_t bucket = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const ParameterState& s = states[i];
    if (s.frozen()) continue;
    const Writer::Scope inside(w, s.parameter->name);
    write_adamw(w, c, s, norm);
    if (bucket == buckets.size() || buckets[bucket].states.back() != i) continue;
    Exchange gather{.kind = Exchange::Kind::all_gather, .axis = Axis::data};
    for (std::size_t member : buckets[bucket].states) {
      const ParameterState& m = states[member];
      const TensorId value = m.parameter->value;
      gather.transfers.push_back({{value, m.first_element()}, {value, 0}, m.elements(), w.tensor(value).type});
    }
    w.begin_ahead("gather_parameters", std::move(gather), buckets[bucket++].ticket);
  }
}

}  // namespace trellis::train
