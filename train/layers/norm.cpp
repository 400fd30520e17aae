#include "train/layers/norm.h"

#include "kernels/layers/layer_norm.h"
#include "kernels/layers/rms_norm.h"
#include "train/layers/arithmetic.h"

namespace trellis::train {

Norm::Norm(Writer& w, Parameters& parameters, Kind kind, const std::string& name, std::size_t columns, float epsilon,
           bool partial)
    : kind_(kind), columns_(columns), epsilon_(epsilon) {
  weight_ = &parameters.add(
      w, {.name = name + ".weight", .rows = columns, .initial = {Initial::Kind::ones}, .partial = partial});
  if (kind == Kind::layer)
    bias_ = &parameters.add(
        w, {.name = name + ".bias", .rows = columns, .initial = {Initial::Kind::zeros}, .partial = partial});
}

TensorId Norm::forward(Writer& w, TensorId x, Saved& saved) const {
  const std::size_t rows = w.tensor(x).elements() / columns_;
  const DType type = w.tensor(x).type;
  const TensorId y = w.tensor("normed", type, w.tensor(x).rows, w.tensor(x).columns),
                 scales = w.tensor("scales", DType::f32, rows, 1);
  saved = {x, scales, no_tensor};
  const double flops = 4.0 * static_cast<double>(rows * columns_);
  if (kind_ == Kind::rms) {
    w.compute("rms_norm", {x, weight_->value}, {y, scales}, flops, fused_over("rms_norm", w.tensor(x)),
              [=, c = columns_, e = epsilon_, v = weight_->value](const Memory& at, const StepInputs&) {
                kernels::rms_norm(type, at.at(x), at.at(v), at.at(y), at.as<float>(scales), rows, c,
                                  {.epsilon = e, .threads = at.threads()});
              });
    return y;
  }
  const TensorId means = saved.means = w.tensor("means", DType::f32, rows, 1);
  w.compute("layer_norm", {x, weight_->value, bias_->value}, {y, scales, means}, 2 * flops,
            fused_over("layer_norm", w.tensor(x)),
            [=, c = columns_, e = epsilon_, v = weight_->value, b = bias_->value](const Memory& at, const StepInputs&) {
              kernels::layer_norm(type, at.at(x), at.at(v), at.at(b), at.at(y),
                                  {at.as<float>(means), at.as<float>(scales)}, rows, c,
                                  {.epsilon = e, .threads = at.threads()});
            });
  return y;
}

TensorId Norm::backward(Writer& w, TensorId dy, const Saved& s) const {
  const std::size_t rows = w.tensor(dy).elements() / columns_;
  const DType type = w.tensor(dy).type;
  const TensorId dx = w.tensor("dx", type, w.tensor(dy).rows, w.tensor(dy).columns);
  const TensorId dweight = w.tensor("dweight", DType::f32, 1, columns_, Category::scratch);
  const double flops = 8.0 * static_cast<double>(rows * columns_);
  if (kind_ == Kind::rms) {
    w.compute("rms_norm_gradient", {dy, s.x, s.scales, weight_->value}, {dx, dweight}, flops,
              fused_over("rms_norm_gradient", w.tensor(dy)),
              [=, c = columns_, v = weight_->value](const Memory& at, const StepInputs&) {
                kernels::rms_norm_gradient(type, at.at(dy), at.at(s.x), at.at(v), at.as<float>(s.scales), at.at(dx),
                                           at.as<float>(dweight), rows, c, at.threads());
              });
  } else {
    const TensorId dbias = w.tensor("dbias", DType::f32, 1, columns_, Category::scratch);
    w.compute("layer_norm_gradient", {dy, s.x, s.scales, s.means, weight_->value}, {dx, dweight, dbias}, flops,
              fused_over("layer_norm_gradient", w.tensor(dy)),
              [=, c = columns_, v = weight_->value](const Memory& at, const StepInputs&) {
                kernels::layer_norm_gradient(type, at.at(dy), at.at(s.x), at.at(v),
                                             {at.as<float>(s.means), at.as<float>(s.scales)}, at.at(dx),
                                             at.as<float>(dweight), at.as<float>(dbias), rows, c, at.threads());
              });
    if (!bias_->frozen) add_into(w, "add_dbias", dbias, bias_->gradient);
  }
  if (!weight_->frozen) add_into(w, "add_dweight", dweight, weight_->gradient);
  return dx;
}

}  // namespace trellis::train
