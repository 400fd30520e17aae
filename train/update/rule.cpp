#include "train/update/rule.h"

#include <algorithm>
#include <cmath>

#include "kernels/reduce/clip_factor.h"
#include "kernels/types/fnv1a.h"
#include "text/refuse.h"
#include "text/registry.h"
#include "train/config/plugin_code.h"
#include "train/update/gradient_norm.h"
#include "train/update/parameter_update.h"

namespace trellis::train {
namespace {

text::Registry<UpdateRule>& registry() {
  static text::Registry<UpdateRule> all("update rule");
  return all;
}

kernels::WeightStorage keep_of(Precision p) {
  if (p == Precision::bf16_sr) return kernels::WeightStorage::bf16_stochastic;
  if (p == Precision::bf16) return kernels::WeightStorage::bf16_nearest;
  return has_masters(p) ? kernels::WeightStorage::f32_copy : kernels::WeightStorage::f32;
}

void* shifted(void* p, DType t, std::size_t elements) {
  return p == nullptr ? p : static_cast<std::byte*>(p) + elements * kernels::size_of(t);
}

}  // namespace

RegisteredUpdateRule::RegisteredUpdateRule(UpdateRule rule) {
  register_from(__builtin_return_address(0), registry(), std::move(rule));
}

const UpdateRule& update_rule_named(std::string_view name) { return registry().named(name, "model.optim.name is"); }

ParameterUpdate::ParameterUpdate(const Writer& w, const UpdateContext& u, std::size_t state)
    : state_(u.states[state]),
      keep_(keep_of(u.config.precision)),
      seed_(u.config.seed),
      average_(average(w, u.config)),
      max_norm_(u.config.optimizer.max_norm),
      weight_decay_(state_.parameter->decays || u.config.optimizer.norm_weight_decay ? u.config.optimizer.weight_decay
                                                                                     : 0),
      rate_(1),
      norm_(u.norm),
      type_(w.tensor(state_.parameter->value).type),
      gradient_type_(w.tensor(state_.gradient).type) {
  if (!u.config.optimizer.group) return;
  const std::string& name = state_.parameter->name;
  const ParameterGroup group = u.config.optimizer.group(name);
  if (!(group.rate >= 0) || !std::isfinite(group.rate) || group.weight_decay < 0)
    text::refuse("the group of {} has rate {} and weight decay {}: expected 0 or more", name, group.rate,
                 group.weight_decay);
  rate_ = group.rate;
  if (!std::isnan(group.weight_decay)) weight_decay_ = group.weight_decay;
}

void ParameterUpdate::each_run(const Memory& at, const StepInputs& now,
                               const std::function<void(const UpdateSpan&)>& work) const {
  double factor = average_;
  if (norm_ != no_tensor) {
    const double length = *at.as<double>(norm_);
    if (!std::isfinite(length)) return;
    factor *= kernels::clip_factor(length, max_norm_);
  }
  const TensorSlice& s = state_.slice;
  const bool lines = s.column_count == s.columns;
  const std::size_t runs = lines ? 1 : s.row_count, n = lines ? s.elements() : s.column_count;
  for (std::size_t i = 0; i < runs && n > 0; ++i) {
    const std::size_t first = i * n;
    const auto state = [&](TensorId t) { return t == no_tensor ? nullptr : at.as<float>(t) + first; };
    void* const own = shifted(at.at(state_.parameter->value), type_, state_.first_element() + first);
    UpdateSpan run{.weights = {.keep = keep_, .values = own},
                   .gradient = {gradient_type_, shifted(at.at(state_.gradient), gradient_type_, first), factor},
                   .first = state(state_.first),
                   .second = state(state_.second),
                   .n = n,
                   .random = {.seed = seed_,
                              .step = static_cast<std::uint64_t>(now.step),
                              .tensor = kernels::fnv1a(state_.parameter->name),
                              .first = s.index(i, 0)}};
    if (keep_ == kernels::WeightStorage::f32_copy) run.weights.values = state(state_.master), run.weights.copy = own;
    work(run);
  }
}

schedule::OperationShape ParameterUpdate::shape(std::string_view kind) const {
  return shape_over(kind, keep_ == kernels::WeightStorage::f32_copy ? DType::f32 : type_,
                    std::max<std::size_t>(1, state_.slice.row_count),
                    std::max<std::size_t>(1, state_.slice.column_count));
}

std::vector<TensorId> ParameterUpdate::writes() const {
  std::vector<TensorId> all{state_.parameter->value};
  for (const TensorId t : {state_.first, state_.second, state_.master})
    if (t != no_tensor) all.push_back(t);
  return all;
}

std::vector<TensorId> ParameterUpdate::reads() const {
  std::vector<TensorId> all = writes();
  all.push_back(state_.gradient);
  if (norm_ != no_tensor) all.push_back(norm_);
  return all;
}

}  // namespace trellis::train
