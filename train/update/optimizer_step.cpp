#include "train/update/optimizer_step.h"

#include <algorithm>

#include "train/update/gradient_exchange.h"
#include "train/update/gradient_norm.h"
#include "train/update/parameter_update.h"
#include "train/update/rule.h"

namespace trellis::train {

std::vector<AllGatherBucket> parameter_buckets(Writer& w, const StepConfig& c,
                                               const std::vector<OptimizerState>& states,
                                               const std::vector<std::size_t>& ends) {
  std::vector<AllGatherBucket> buckets;
  const Rank ranks = size_of(w.shape(), Axis::sharding);
  if (!c.strategy.zero1 || ranks == 1) return buckets;
  const std::size_t cap = std::max<std::size_t>(1, bucket_bytes(c) / static_cast<std::size_t>(ranks));
  std::size_t bytes = cap;  // as if full, so that the first parameter begins a bucket
  const auto gathered = [&](std::size_t i) {
    return !states[i].frozen() && size_of(w.shape(), data_axis(w.shape(), *states[i].parameter)) > 1;
  };
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (std::ranges::find(ends, i) != ends.end()) bytes = cap;
    if (!gathered(i)) continue;
    const Axis axis = data_axis(w.shape(), *states[i].parameter);
    if (bytes >= cap || axis != buckets.back().axis)
      buckets.push_back({.ticket = w.ticket_ahead(), .axis = axis}), bytes = 0;
    buckets.back().states.push_back(i);
    bytes += w.tensor(states[i].parameter->value).bytes();
  }
  return buckets;
}

void write_update(Writer& w, const StepConfig& c, const std::vector<OptimizerState>& states, TensorId norm,
                  const std::vector<AllGatherBucket>& buckets) {
  const Writer::Scope scope(w, "update");
  const Writer::For what(w, Phase::update);
  if (norm != no_tensor) write_norm(w, c, states, norm);
  const UpdateRule& rule = update_rule_named(c.optimizer.name);
  UpdateContext update{.config = c, .states = states, .norm = norm};
  if (rule.prepare) rule.prepare(w, update);
  std::size_t bucket = 0;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const OptimizerState& s = states[i];
    if (s.frozen()) continue;
    const Writer::Scope inside(w, s.parameter->name);
    rule.write(w, update, i);
    if (bucket == buckets.size() || buckets[bucket].states.back() != i) continue;
    Exchange gather{.kind = Exchange::Kind::all_gather, .axis = buckets[bucket].axis};
    for (std::size_t member : buckets[bucket].states) {
      const OptimizerState& m = states[member];
      const TensorId value = m.parameter->value;
      gather.transfers.push_back({{value, m.first_element()}, {value, 0}, m.elements(), w.tensor(value).type});
    }
    w.begin_ahead("gather_parameters", std::move(gather), buckets[bucket++].ticket);
  }
}

}  // namespace trellis::train
