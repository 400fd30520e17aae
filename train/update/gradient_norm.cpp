#include "train/update/gradient_norm.h"

#include <cmath>
#include <limits>

#include "kernels/reduce/dot.h"
#include "kernels/types/convert.h"

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

}  // namespace

double average(const Writer& w, const StepConfig& c) {
  return c.strategy.zero1 ? 1.0 / size_of(w.shape(), Axis::sharding) : 1;
}

void write_norm(Writer& w, const StepConfig& c, const std::vector<OptimizerState>& states, TensorId norm) {
  struct Term {
    TensorId gradient;
    DType type;
    std::size_t n;
    double share;
  };
  // Without ZeRO-1, ranks of the expert axis have experts of their own and copies of everything else: each counts its
  // share of what they all have.
  const Rank experts = c.strategy.zero1 ? 1 : w.shape().expert;
  std::vector<Term> terms;
  std::vector<TensorId> reads;
  double flops = 0;
  schedule::OperationShape shape{.kind = "gradient_norm", .columns = 0};
  for (const OptimizerState& s : states)
    if (s.parameter->owner && !s.frozen()) {
      terms.push_back({s.gradient, w.tensor(s.gradient).type, s.slice.elements(),
                       s.parameter->share / (s.parameter->of_expert ? 1 : experts)});
      reads.push_back(s.gradient);
      flops += 2.0 * static_cast<double>(s.slice.elements());
      shape.columns += s.slice.elements(), shape.type = kernels::name(terms.back().type);
    }
  const double p = c.optimizer.norm_type, scale = average(w, c);
  const auto join = std::isinf(p) ? kernels::Reduction::max : kernels::Reduction::sum;
  w.compute("squares", reads, {norm}, flops, std::move(shape), [=](const Memory& at, const StepInputs&) {
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
  if (experts > 1) w.all_reduce("norm_experts", Axis::expert_model, norm, join);
  if (size_of(w.shape(), Axis::sharding) > 1 && c.strategy.zero1)
    w.all_reduce("norm_data", replica_axis(w.shape()), norm, join);
  w.compute("norm", {norm}, {norm}, 1, {.kind = "add"}, [=](const Memory& at, const StepInputs&) {
    double& n = *at.as<double>(norm);
    n = scale * (std::isinf(p) ? n : std::pow(n, 1 / p));
  });
}

}  // namespace trellis::train
