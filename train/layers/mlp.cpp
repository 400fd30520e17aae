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
  saved = {x, ys[0], ys.back()};
  if (options_.kind == MlpOptions::Kind::gelu) {
    saved.inner = activated(w, "inner", ys[0], options_.activation);
  } else {
    const Tensor like = w.tensor(ys[0]);
    saved.inner = w.tensor("inner", like.type, like.rows, like.columns);
    w.compute("swiglu", {ys[0], ys[1]}, {saved.inner}, 8.0 * static_cast<double>(like.elements()),
              fused_over("swiglu", like),
              [n = like.elements(), type = like.type, s = saved](const Memory& at, const StepInputs&) {
                kernels::swiglu(type, at.at(s.gate), at.at(s.up), at.at(s.inner), n, at.threads());
              });
  }
  return down_.forward(w, saved.inner);
}

TensorId Mlp::backward(Writer& w, TensorId dy, const Saved& s) const {
  const TensorId dinner = down_.backward(w, dy, s.inner);
  if (options_.kind == MlpOptions::Kind::gelu)
    return up_.backward(w, {activation_gradient(w, "dup", dinner, s.up, options_.activation)}, s.x);
  const Tensor like = w.tensor(s.up);
  const TensorId dup = w.tensor("dup", like.type, like.rows, like.columns);
  const TensorId dgate = w.tensor("dgate", like.type, like.rows, like.columns);
  w.compute("swiglu_gradient", {dinner, s.gate, s.up}, {dgate, dup}, 12.0 * static_cast<double>(like.elements()),
            fused_over("swiglu_gradient", like),
            [=, n = like.elements(), type = like.type](const Memory& at, const StepInputs&) {
              kernels::swiglu_gradient(type, at.at(dinner), at.at(s.gate), at.at(s.up), at.at(dgate), at.at(dup), n,
                                       at.threads());
            });
  return up_.backward(w, {dgate, dup}, s.x);
}

}  // namespace trellis::train
