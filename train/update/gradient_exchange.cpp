#include "train/update/gradient_exchange.h"

#include <algorithm>

#include "train/update/gradient_buckets.h"

namespace trellis::train {

std::size_t bucket_bytes(const StepConfig& c) {
  if (c.optimizer.bucket_mb != 0) return c.optimizer.bucket_mb << 20;
  if (!c.strategy.zero1) return std::size_t{512} << 20;
  return std::size_t{has_masters(c.precision) ? 65U : 130U} << 20;
}

GradientExchange::GradientExchange(const StepConfig& c, const std::vector<OptimizerState>& states)
    : cap_(bucket_bytes(c)), zero_(c.strategy.zero1), states_(states), sent_(states.size(), false) {}

void GradientExchange::ready(Writer& w, const Parameter& p) {
  const auto found = std::ranges::find(states_, &p, &OptimizerState::parameter);
  const auto i = static_cast<std::size_t>(found - states_.begin());
  if (size_of(w.shape(), data_axis(w.shape(), p)) == 1 || sent_[i] || p.frozen) return;
  sent_[i] = true;
  add(w, i, p.of_expert ? of_experts_ : pending_);
}

// Applies the rules of gradient_buckets.h tensor by tensor: sends pending tensors first, if they do not go together
// with this one.
void GradientExchange::add(Writer& w, std::size_t i, Pending& pending) {
  std::vector<std::size_t> bytes;
  for (std::size_t each : pending) bytes.push_back(w.tensor(states_[each].parameter->gradient).bytes());
  bytes.push_back(w.tensor(states_[i].parameter->gradient).bytes());
  const auto buckets = zero_ ? reduce_scatter_buckets(bytes, cap_) : all_reduce_buckets(bytes, cap_);
  const std::size_t last = bytes.size() - 1;
  const bool joined = buckets.back().front() == 0;
  if (!joined) flush(w, pending);
  pending.push_back(i);
  std::size_t total = 0;
  for (std::size_t b : std::span(bytes).subspan(joined ? 0 : last)) total += b;
  if (zero_ ? total > cap_ : bytes[last] >= cap_) flush(w, pending);
}

void GradientExchange::flush(Writer& w, Pending& pending) {
  if (pending.empty()) return;
  Exchange e;
  e.axis = data_axis(w.shape(), *states_[pending[0]].parameter);
  if (!zero_) e.reduction = kernels::Reduction::scaled_sum, e.factor = 1.0 / size_of(w.shape(), e.axis);
  e.kind = zero_ ? Exchange::Kind::reduce_scatter : Exchange::Kind::all_reduce;
  for (std::size_t i : pending) {
    const OptimizerState& s = states_[i];
    const Tensor& whole = w.tensor(s.parameter->gradient);
    if (zero_)
      e.transfers.push_back({{s.parameter->gradient, 0}, {s.gradient, 0}, s.elements(), whole.type});
    else
      e.transfers.push_back({{s.parameter->gradient, 0}, {s.parameter->gradient, 0}, whole.elements(), whole.type});
  }
  tickets_.push_back(w.begin("sum_gradients", std::move(e)));
  pending.clear();
}

void GradientExchange::finish(Writer& w, const std::vector<const Parameter*>& tied) {
  const Writer::Scope scope(w, "gradients");
  for (const Parameter* p : tied)
    if (!p->frozen) w.all_reduce("sum_tied", Axis::tied, p->gradient);
  Exchange partial;
  for (const OptimizerState& s : states_)
    if (s.parameter->partial && !s.frozen()) {
      const Tensor& t = w.tensor(s.parameter->gradient);
      partial.transfers.push_back({{s.parameter->gradient, 0}, {s.parameter->gradient, 0}, t.elements(), t.type});
    }
  if (!partial.transfers.empty() && w.shape().tensor > 1) w.exchange("sum_partial", std::move(partial));
  for (std::size_t i = states_.size(); i-- > 0;) ready(w, *states_[i].parameter);
  flush(w, pending_);
  flush(w, of_experts_);
  for (int ticket : tickets_) w.wait(ticket);
}

}  // namespace trellis::train
