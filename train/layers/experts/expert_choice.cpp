// The parts of a mixture of experts around the experts: choosing them, adding up their results, and both gradients.
#include <algorithm>

#include "train/layers/element_access.h"
#include "train/layers/experts/experts.h"

namespace trellis::train {
void Experts::choose(Writer& w, TensorId logits, Saved& s) const {
  const std::size_t n = options_.tokens, k = options_.rule.top_k, experts = options_.rule.experts;
  s.scores = w.tensor("scores", DType::f32, n, experts);
  s.chosen = w.tensor("chosen", DType::i32, n, k), s.weights = w.tensor("weights", DType::f32, n, k);
  s.slots = w.tensor("slots", DType::i32, n, k), s.counts = w.tensor("counts", DType::i32, experts, 1);
  std::vector<TensorId> reads{logits};
  const TensorId bias = bias_ == nullptr ? no_tensor : bias_->value;
  if (bias != no_tensor) reads.push_back(bias);
  w.compute("route", std::move(reads), {s.scores, s.chosen, s.weights, s.slots, s.counts},
            8.0 * static_cast<double>(n * experts), shape_over("route", w.tensor(logits)),
            [=, s = s, rule = options_.rule, slot = SlotRule{capacity_, ranks_}](const Memory& at, const StepInputs&) {
              auto* const chosen = at.as<std::int32_t>(s.chosen);
              route(rule, n, at.as<float>(logits), bias == no_tensor ? nullptr : at.as<float>(bias),
                    at.as<float>(s.scores), chosen, at.as<float>(s.weights));
              count_chosen(rule, n, chosen, at.as<std::int32_t>(s.counts));
              slots_of(rule, slot, n, chosen, at.as<std::int32_t>(s.counts), at.as<std::int32_t>(s.slots));
            });
  s.totals = s.counts;
  if (w.shape().context > 1 && options_.balance > 0) {
    s.totals = w.tensor("totals", DType::i32, experts, 1);
    w.compute("keep_counts", {s.counts}, {s.totals}, 0, shape_over("copy", w.tensor(s.totals)),
              [=, s = s](const Memory& at, const StepInputs&) {
                std::copy_n(at.as<std::int32_t>(s.counts), experts, at.as<std::int32_t>(s.totals));
              });
    w.all_reduce("totals", Axis::context, s.totals);
  }
  s.arriving = s.counts;
  if (limited() || ranks_ == 1) return;
  s.arriving = w.tensor("arriving", DType::i32, experts, 1);
  w.all_to_all("counts", Axis::expert_model, s.counts, s.arriving);
}

// Adds the load-balancing loss, and counts each expert's load in the step. Not called when a pass is recomputed.
void Experts::add_balance(Writer& w, const Saved& s) const {
  const std::size_t n = options_.tokens;
  if (options_.balance > 0)
    w.compute("balance", {s.scores, s.totals, options_.loss}, {options_.loss},
              2.0 * static_cast<double>(w.tensor(s.scores).elements()), fused_over("reduce", w.tensor(s.scores)),
              [=, rule = options_.rule, factor = options_.balance, loss = options_.loss](const Memory& at,
                                                                                         const StepInputs&) {
                *at.as<double>(loss) +=
                    factor * imbalance(rule, n, at.as<float>(s.scores), at.as<std::int32_t>(s.totals));
              });
  if (load_ == no_tensor) return;
  const bool first = w.first_term(load_);
  std::vector<TensorId> reads{s.counts};
  if (!first) reads.push_back(load_);
  w.compute("load", std::move(reads), {load_}, static_cast<double>(options_.rule.experts),
            fused_over("add", w.tensor(load_)),
            [=, load = load_, experts = options_.rule.experts](const Memory& at, const StepInputs&) {
              for (std::size_t e = 0; e < experts; ++e) {
                const auto count = static_cast<float>(at.as<std::int32_t>(s.counts)[e]);
                at.as<float>(load)[e] = first ? count : at.as<float>(load)[e] + count;
              }
            });
}

// y of a token: the sum of its experts' results times their weights.
TensorId Experts::combined(Writer& w, const Saved& s, DType type) const {
  const std::size_t n = options_.tokens, k = options_.rule.top_k, hidden = options_.hidden;
  const TensorId y = w.tensor("combined", type, n, hidden);
  w.compute("combine", {s.returned, s.slots, s.weights}, {y}, 2.0 * static_cast<double>(n * k * hidden),
            shape_over("combine", type, n * k, hidden), [=](const Memory& at, const StepInputs&) {
              typed(type, at.at(y), [&](auto* out) {
                const auto* const rows = static_cast<decltype(out)>(at.at(s.returned));
                std::vector<float> sum(hidden);
                for (std::size_t t = 0; t < n; ++t, out += hidden) {
                  std::ranges::fill(sum, 0);
                  for (std::size_t i = t * k; i < (t + 1) * k; ++i) {
                    const std::int32_t slot = at.as<std::int32_t>(s.slots)[i];
                    if (slot < 0) continue;
                    const auto* const row = rows + static_cast<std::size_t>(slot) * hidden;
                    const float weight = at.as<float>(s.weights)[i];
                    for (std::size_t c = 0; c < hidden; ++c) sum[c] += weight * get(row[c]);
                  }
                  for (std::size_t c = 0; c < hidden; ++c) put(sum[c], out[c]);
                }
              });
            });
  return y;
}

// The gradients of the experts' results, in the rows that were sent, and of the weights.
std::pair<TensorId, TensorId> Experts::split_gradient(Writer& w, TensorId dy, const Saved& s) const {
  const std::size_t n = options_.tokens, k = options_.rule.top_k, hidden = options_.hidden;
  const DType type = w.tensor(dy).type, results = w.tensor(s.returned).type;
  const TensorId dsent = sent_rows(w, "dsent", type), dweights = w.tensor("dweights", DType::f32, n, k);
  w.compute("split", {dy, s.returned, s.slots, s.weights}, {dsent, dweights}, 3.0 * static_cast<double>(n * k * hidden),
            shape_over("split", type, n * k, hidden),
            [=, rows = w.tensor(dsent).rows, empty = limited()](const Memory& at, const StepInputs&) {
              typed(type, at.at(dsent), [&](auto* to) {
                typed(results, at.at(s.returned), [&](const auto* from) {
                  const auto* const all = static_cast<decltype(to)>(at.at(dy));
                  if (empty) std::fill_n(to, rows * hidden, 0);
                  for (std::size_t i = 0; i < n * k; ++i) {
                    const std::int32_t slot = at.as<std::int32_t>(s.slots)[i];
                    float& dweight = at.as<float>(dweights)[i];
                    dweight = 0;
                    if (slot < 0) continue;
                    const auto* const grad = all + i / k * hidden;
                    const std::size_t first = static_cast<std::size_t>(slot) * hidden;
                    const float weight = at.as<float>(s.weights)[i];
                    for (std::size_t c = 0; c < hidden; ++c) {
                      dweight += get(grad[c]) * get(from[first + c]);
                      put(weight * get(grad[c]), to[first + c]);
                    }
                  }
                });
              });
            });
  return {dsent, dweights};
}

// The gradient of the router's logits, narrow where the router's product is. It is later summed over the tensor axis,
// whose ranks all compute the same load-balancing loss, so each adds only its share of that loss's gradient.
TensorId Experts::router_gradient(Writer& w, TensorId dweights, const Saved& s) const {
  const std::size_t n = options_.tokens, experts = options_.rule.experts;
  const TensorId dlogits = w.tensor("dlogits", DType::f32, n, experts);
  const auto tokens = static_cast<double>(n);
  const double factor =
      options_.balance * static_cast<double>(experts) / tokens / tokens / static_cast<double>(w.shape().tensor);
  w.compute("route_gradient", {s.scores, s.chosen, s.totals, dweights}, {dlogits},
            6.0 * static_cast<double>(n * experts), shape_over("route_gradient", w.tensor(dlogits)),
            [=, rule = options_.rule](const Memory& at, const StepInputs&) {
              std::vector<double> balance(experts);
              for (std::size_t e = 0; e < experts; ++e) balance[e] = factor * at.as<std::int32_t>(s.totals)[e];
              route_gradient(rule, n, at.as<float>(s.scores), at.as<std::int32_t>(s.chosen), at.as<float>(dweights),
                             factor > 0 ? balance.data() : nullptr, at.as<float>(dlogits));
            });
  return cast_to(w, "narrow_dlogits", dlogits, narrow(w.tensor(router_->value).type));
}

// dx += the gradients of a token's rows.
void Experts::gathered_gradient(Writer& w, TensorId from, TensorId dx, const Saved& s) const {
  const std::size_t n = options_.tokens, k = options_.rule.top_k, hidden = options_.hidden;
  const DType type = w.tensor(from).type;
  w.compute("gather_gradient", {from, s.slots, dx}, {dx}, static_cast<double>(n * k * hidden),
            shape_over("combine", type, n * k, hidden), [=](const Memory& at, const StepInputs&) {
              typed(type, at.at(from), [&](const auto* rows) {
                for (std::size_t i = 0; i < n * k; ++i) {
                  const std::int32_t slot = at.as<std::int32_t>(s.slots)[i];
                  if (slot < 0) continue;
                  const auto* const row = rows + static_cast<std::size_t>(slot) * hidden;
                  float* const to = at.as<float>(dx) + i / k * hidden;
                  for (std::size_t c = 0; c < hidden; ++c) to[c] += get(row[c]);
                }
              });
            });
}

// Each expert's bias moves by the rate: down where it had more tokens than the mean, of all data-parallel ranks.
void Experts::update(Writer& w) const {
  if (load_ == no_tensor) return;
  const Writer::Scope scope(w, bias_->name);
  if (size_of(w.shape(), Axis::sharding) > 1) w.all_reduce("load", replica_axis(w.shape()), load_);
  w.compute("bias", {load_, bias_->value}, {bias_->value}, 2.0 * static_cast<double>(options_.rule.experts),
            fused_over("add", w.tensor(load_)),
            [load = load_, bias = bias_->value, n = options_.rule.experts,
             rate = static_cast<float>(options_.bias_rate)](const Memory& at, const StepInputs&) {
              const auto* const tokens = at.as<float>(load);
              double mean = 0;
              for (std::size_t e = 0; e < n; ++e) mean += static_cast<double>(tokens[e]) / static_cast<double>(n);
              for (std::size_t e = 0; e < n; ++e) {
                const auto here = static_cast<double>(tokens[e]);
                at.as<float>(bias)[e] += here < mean ? rate : here > mean ? -rate : 0;
              }
            });
}

}  // namespace trellis::train
