#include "train/layers/replicated_linear.h"

#include "train/layers/arithmetic.h"

namespace trellis::train {

ReplicatedLinear::ReplicatedLinear(Writer& w, Parameters& parameters, const std::string& name, std::size_t inputs,
                                   std::size_t outputs, double deviation, bool partial)
    : inputs_(inputs), outputs_(outputs) {
  weight_ = &parameters.add(w, {.name = name + ".weight",
                                .rows = outputs,
                                .columns = inputs,
                                .initial = {Initial::Kind::normal, deviation},
                                .partial = partial});
  bias_ = &parameters.add(
      w, {.name = name + ".bias", .rows = outputs, .initial = {Initial::Kind::zeros}, .partial = partial});
}

TensorId ReplicatedLinear::forward(Writer& w, TensorId x, std::size_t rows, DType type) const {
  const TensorId y = w.tensor("y", type, rows, outputs_);
  product(w, "matmul", {x, rows, inputs_}, {weight_->value, outputs_, inputs_, true}, y,
          {.model_part = weight_->partial ? 1 : weight_->share});
  add_bias(w, "add_bias", y, bias_->value, outputs_);
  return y;
}

TensorId ReplicatedLinear::backward(Writer& w, TensorId dy, TensorId x) const {
  const DType type = w.tensor(x).type;
  const std::size_t rows = w.tensor(dy).rows;
  const TensorId narrow = cast_to(w, "narrowed", dy, type), dx = w.tensor("dx", type, rows, inputs_);
  product(w, "dx", {narrow, rows, outputs_}, {weight_->value, outputs_, inputs_}, dx);
  if (weight_->frozen) return dx;
  w.weight_gradient([this, narrow, x, rows](Writer& writer) {
    product(writer, "dweight", {narrow, rows, outputs_, true}, {x, rows, inputs_}, weight_->gradient,
            {.accumulate = true});
    add_bias_gradient(writer, "dbias", narrow, bias_->gradient, outputs_);
  });
  return dx;
}

}  // namespace trellis::train
