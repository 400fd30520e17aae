#include "train/layers/mlp.h"

namespace trellis::train {
namespace {

std::vector<Output> outputs(const std::string& name, const MlpOptions& o) {
  std::vector<Output> result;
  for (std::size_t i = 0; i + 1 < o.names.size(); ++i)
    result.push_back({.name = name + "." + o.names[i], .outputs = o.inner});
  return result;
}

}  // namespace

Mlp::Mlp(Writer& w, Parameters& parameters, const std::string& name, const MlpOptions& o)
    : options_(o),
      up_(w, parameters, o.hidden, outputs(name, o), o.linear),
      down_(w, parameters, name + "." + o.names.back(), o.inner, o.hidden,
            o.linear.with_deviation(o.output_deviation)) {}

TensorId Mlp::forward(Writer& w, TensorId x, Saved& saved) const {
  const auto ys = up_.forward(w, x);
  const Tensor like = w.tensor(ys[0]);
  const TensorId inner = w.tensor("inner", like.type, like.rows, like.columns);
  const std::size_t n = like.elements();
  const double flops = 8.0 * static_cast<double>(n);
  saved = {x, ys[0], ys.back(), inner};
  if (options_.kind == MlpOptions::Kind::swiglu)
    w.compute("swiglu", {ys[0], ys[1]}, {inner}, flops, fused_over("swiglu", like),
              [=, type = like.type](const Memory& at, const StepInputs&) {
                kernels::swiglu(type, at.at(ys[0]), at.at(ys[1]), at.at(inner), n, at.threads());
              });
  else
    w.compute("gelu", {ys[0]}, {inner}, flops, fused_over("gelu", like),
              [=, a = options_.activation, type = like.type](const Memory& at, const StepInputs&) {
                kernels::activate(a, type, at.at(ys[0]), at.at(inner), n, at.threads());
              });
  return down_.forward(w, inner);
}

TensorId Mlp::backward(Writer& w, TensorId dy, const Saved& s) const {
  const TensorId dinner = down_.backward(w, dy, s.inner);
  const Tensor like = w.tensor(s.up);
  const std::size_t n = like.elements();
  const double flops = 12.0 * static_cast<double>(n);
  const TensorId dup = w.tensor("dup", like.type, like.rows, like.columns);
  if (options_.kind == MlpOptions::Kind::gelu) {
    w.compute("gelu_gradient", {dinner, s.up}, {dup}, flops, fused_over("gelu_gradient", like),
              [=, a = options_.activation, type = like.type](const Memory& at, const StepInputs&) {
                kernels::activate_gradient(a, type, at.at(dinner), at.at(s.up), at.at(dup), n, at.threads());
              });
    return up_.backward(w, {dup}, s.x);
  }
  const TensorId dgate = w.tensor("dgate", like.type, like.rows, like.columns);
  w.compute("swiglu_gradient", {dinner, s.gate, s.up}, {dgate, dup}, flops, fused_over("swiglu_gradient", like),
            [=, type = like.type](const Memory& at, const StepInputs&) {
              kernels::swiglu_gradient(type, at.at(dinner), at.at(s.gate), at.at(s.up), at.at(dgate), at.at(dup), n,
                                       at.threads());
            });
  return up_.backward(w, {dgate, dup}, s.x);
}

}  // namespace trellis::train
