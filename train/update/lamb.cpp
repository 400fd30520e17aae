// LAMB moves each parameter in proportion to its own length. The lengths are those of whole parameters: shards' sums of
// squares are added up over the tensor axis and, with ZeRO-1, over the data axis, all parameters' in one all_reduce.
// Parameters that do not decay (biases, norms) move as with AdamW.
#include "kernels/optimizers/lamb.h"

#include <fmt/format.h>

#include "train/update/parameter_update.h"
#include "train/update/rule.h"

namespace trellis::train {
namespace {

kernels::LambOptions options(const OptimizerConfig& o, const ParameterUpdate& p, const UpdateSpan& r, const Memory& at,
                             const StepInputs& now) {
  return {.learning_rate = p.learning_rate(now),
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .epsilon = o.epsilon,
          .weight_decay = p.weight_decay(),
          .step = static_cast<std::uint64_t>(now.step),
          .random = r.random,
          .threads = at.threads()};
}

void write_moments(Writer& w, const UpdateContext& u, std::size_t i) {
  const ParameterUpdate p(w, u, i);
  std::vector<TensorId> writes{u.sums, u.states[i].first, u.states[i].second};
  w.compute("moments", p.reads(), std::move(writes), 16 * p.elements(), p.shape("lamb"),
            [p, i, sums = u.sums, share = u.states[i].parameter->share, o = u.config.optimizer](const Memory& at,
                                                                                                const StepInputs& now) {
              kernels::LambSquaredNorms whole;
              p.each_run(at, now, [&](const UpdateSpan& r) {
                const kernels::LambSquaredNorms part = kernels::lamb_moments(
                    r.weights, r.gradient, {DType::f32, r.first, r.second}, r.n, options(o, p, r, at, now));
                whole.parameters += part.parameters, whole.direction += part.direction;
              });
              at.as<double>(sums)[2 * i] = share * whole.parameters;
              at.as<double>(sums)[2 * i + 1] = share * whole.direction;
            });
}

// With ZeRO-1, adds up u.sums over the ranks among which a parameter's rows are divided: for an expert's parameters
// those that have this expert, for others all data-parallel ranks.
void sum_shards(Writer& w, const UpdateContext& u) {
  if (w.shape().expert == 1) {
    if (size_of(w.shape(), Axis::sharding) > 1) w.all_reduce("lamb_sums_data", replica_axis(w.shape()), u.sums);
    return;
  }
  if (size_of(w.shape(), Axis::expert_data) > 1) w.all_reduce("lamb_sums_data", Axis::expert_data, u.sums);
  Exchange rest{.axis = Axis::expert_model};
  for (std::size_t i = 0; i < u.states.size(); ++i)
    if (!u.states[i].parameter->of_expert) rest.transfers.push_back({{u.sums, 2 * i}, {u.sums, 2 * i}, 2, DType::f64});
  w.exchange("lamb_sums_experts", std::move(rest));
}

void prepare(Writer& w, UpdateContext& u) {
  u.sums = w.tensor("lamb_sums", DType::f64, u.states.size(), 2);
  w.compute("zero_sums", {}, {u.sums}, 0, shape_over("fill", w.tensor(u.sums)),
            [sums = u.sums, n = u.states.size()](const Memory& at, const StepInputs&) {
              std::fill_n(at.as<double>(sums), 2 * n, 0.0);
            });
  for (std::size_t i = 0; i < u.states.size(); ++i) {
    if (u.states[i].frozen()) continue;
    const Writer::Scope inside(w, u.states[i].parameter->name);
    write_moments(w, u, i);
  }
  if (w.shape().tensor > 1) w.all_reduce("lamb_sums_tensor", Axis::tensor, u.sums);
  if (u.config.strategy.zero1) sum_shards(w, u);
}

void write_lamb(Writer& w, const UpdateContext& u, std::size_t i) {
  const ParameterUpdate p(w, u, i);
  std::vector<TensorId> reads = p.reads();
  reads.push_back(u.sums);
  w.compute("lamb", std::move(reads), p.writes(), 10 * p.elements(), p.shape("lamb_apply"),
            [p, i, sums = u.sums, o = u.config.optimizer](const Memory& at, const StepInputs& now) {
              const double* const whole = at.as<double>(sums) + 2 * i;
              const double trust = p.weight_decay() == 0 ? 1 : kernels::trust_ratio({whole[0], whole[1]});
              p.each_run(at, now, [&](const UpdateSpan& r) {
                kernels::lamb_apply(r.weights, {DType::f32, r.first, r.second}, trust, r.n, options(o, p, r, at, now));
              });
            });
}

const RegisteredUpdateRule lamb({.name = "lamb", .prepare = prepare, .write = write_lamb});

}  // namespace
}  // namespace trellis::train
