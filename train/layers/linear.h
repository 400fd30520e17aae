// Column- and row-parallel linear layers: y = x W^T + b, W (outputs x inputs) cut over the tensor axis.
//
// Column: each rank has some of the outputs. Forward: with sequence parallelism x is gathered. Backward: the parts of
// dx are summed in f32 over the axis (with sequence parallelism each rank gets its own rows of the sum) while the
// weight's gradient is computed; for the latter, x is gathered again rather than kept. Row: each rank has some of the
// inputs. Forward: parts of y are summed in f32 (and scattered), then the bias is added. Backward: with sequence
// parallelism dy is gathered; nothing else is communicated.
#pragma once

#include <vector>

#include "train/layers/arithmetic.h"
#include "train/layers/parameter.h"

namespace trellis::train {

// Adapters beside a weight: y += scale x A^T B^T, A (rank x inputs), B (outputs x rank), cut as the weight is: B of a
// column-parallel layer by rows, A of a row-parallel one by columns. The other one is whole on every rank, and its
// gradient a partial sum, so nothing more is communicated in between.
struct Adapters {
  std::size_t rank = 0;  // 0: none
  double scale = 1;
  std::vector<std::string> targets = {};  // last words of names
};

// How factors of a product are scaled before they are rounded to 8 bits.
// tensor: a power of two for each whole tensor. mx: one for each 32 elements that are summed over in the product.
enum class Fp8Scaling : std::uint8_t { none, tensor, mx };

struct LinearOptions {
  bool sequence = false;  // x of a column-parallel layer, y of a row-parallel one: each rank has its rows of them
  bool bias = false;
  double deviation = 0.02;            // of the initial weights
  bool narrow = false;                // autocast: products of f32 values are made in bf16
  Fp8Scaling fp8 = Fp8Scaling::none;  // with narrow: factors of the layer's products are rounded to 8 bits
  bool bf16_sums = false;             // sums over the tensor axis are in x's type, not in f32
  Adapters adapters = {};

  LinearOptions with_deviation(double other) const {
    LinearOptions o = *this;
    o.deviation = other;
    return o;
  }
};

class Adapter {
 public:
  // Adapts the weight NAME.weight; adapts nothing if the last word of the name is no target.
  Adapter(Writer&, Parameters&, const Adapters&, const std::string& name, std::size_t inputs, std::size_t outputs,
          Split, const std::optional<TensorPart>& = {});
  void forward(Writer&, TensorId x, TensorId y) const;  // y += the adapter's result
  // dx += times x the gradient through the adapter. Returns what gradients() needs: the gradient of x A^T.
  TensorId backward(Writer&, TensorId dy, TensorId dx, float times = 1) const;
  void gradients(Writer&, TensorId dy, TensorId x, TensorId narrow) const;
  bool none() const { return a_ == nullptr; }

 private:
  TensorId narrowed(Writer&, TensorId x) const;
  float scale_ = 1;
  const Parameter* a_ = nullptr;
  const Parameter* b_ = nullptr;
};

// One output of a column-parallel layer.
struct Output {
  std::string name;  // of the parameter: "...q_proj"; ".weight" and ".bias" are added
  std::size_t outputs;
  std::optional<TensorPart> part = {};  // of the outputs, on this rank; none: equal parts
  DType type = DType::f32;              // of y, where it is not x's
  bool own_type = false;
  bool owner = true;
  std::string bias_name = {};  // empty: the weight's with ".bias"
};

// Several weights with one input, which is gathered once and whose gradient is summed once.
class ColumnParallel {
 public:
  ColumnParallel(Writer&, Parameters&, std::size_t inputs, const std::vector<Output>&, const LinearOptions&);
  std::vector<TensorId> forward(Writer&, TensorId x) const;
  TensorId backward(Writer&, const std::vector<TensorId>& dys, TensorId x) const;  // x: as forward got it
  std::size_t local_outputs(std::size_t i) const { return weights_[i]->slice.row_count; }

 private:
  TensorId gathered(Writer&, TensorId x) const;
  std::vector<Matrix> factors(Writer&, bool transposed) const;
  std::size_t inputs_;
  LinearOptions options_;
  std::vector<Output> outputs_;
  std::vector<const Parameter*> weights_, biases_;
  std::vector<Adapter> adapters_;
  bool trained_ = false;  // any of them
};

class RowParallel {
 public:
  RowParallel(Writer&, Parameters&, const std::string& name, std::size_t inputs, std::size_t outputs,
              const LinearOptions&, const std::optional<TensorPart>& of_inputs = {});
  TensorId forward(Writer&, TensorId x) const;
  TensorId backward(Writer&, TensorId dy, TensorId x) const;

 private:
  std::size_t outputs_;
  LinearOptions options_;
  const Parameter* weight_;
  const Parameter* bias_ = nullptr;
  Adapter adapter_;
};

// Sums the ranks' parts over the tensor axis in their own type, and casts the sum to `type`; with `sequence`, each rank
// gets its own rows. `beside` writes operations that overlap the exchange.
TensorId summed_parts(Writer&, TensorId part, DType type, bool sequence, const std::function<void()>& beside = {});
TensorId gathered_rows(Writer&, TensorId rows);

}  // namespace trellis::train
