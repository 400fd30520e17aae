// The small operations that layers are made of, as they enter a program.
#pragma once

#include "kernels/layers/activation.h"
#include "train/mesh/mesh.h"
#include "train/step/writer.h"

namespace trellis::train {

// The type of both factors of a product, which must be one. Throws invalid_argument.
DType factor_type(const Writer&, std::string_view product, TensorId a, TensorId b);

// A stored matrix as a factor of a product.
struct Matrix {
  TensorId tensor;
  std::size_t rows, columns;  // as stored; a tensor may have more rows
  bool transposed = false;
};

struct ProductOptions {
  float alpha = 1;
  bool accumulate = false;  // add to what the result holds
  // For an accelerator's price. again: factor a was just read. kept: the result stays on the chip for the next product.
  // joined: it adds to what the product before it left on the chip.
  bool again = false, kept = false, joined = false;
  std::string_view type = {};  // the priced type of its factors, where it differs from their type here
  double model_part = 1;       // as of Writer::compute
};

// c = alpha a b, or c += alpha a b. Both factors have one type.
void product(Writer&, std::string_view name, Matrix a, Matrix b, TensorId c, const ProductOptions& = {});

TensorId added(Writer&, std::string_view name, TensorId a, TensorId b);  // a + b, in the wider type
void add_into(Writer&, std::string_view name, TensorId from, TensorId to, double factor = 1);  // to += factor from
TensorId cast_to(Writer&, std::string_view name, TensorId, DType);  // itself, if of that type
void zero(Writer&, std::string_view name, TensorId);

// An activation of x, and its gradient. Whichever activation it is, the operations are named and priced as gelu.
TensorId activated(Writer&, std::string_view name, TensorId x, kernels::Activation);
TensorId activation_gradient(Writer&, std::string_view name, TensorId dy, TensorId x, kernels::Activation);

// y[r] += b for every row; and its gradient, summed over rows into b's.
void add_bias(Writer&, std::string_view name, TensorId y, TensorId bias, std::size_t columns);
void add_bias_gradient(Writer&, std::string_view name, TensorId dy, TensorId gradient, std::size_t columns);

// Drops elements with the probability `rate` and divides the others by 1 - rate. Which ones is decided by the seed, the
// step, `site`, and the element's index in the whole tensor, so the choice does not depend on how the tensor is cut up.
// The whole tensor has a row for each of `batch` sequences at each position; this context rank has the positions
// `part`, and this tensor rank has their rows from `row` on. The gradient is the same operation.
struct Dropout {
  double rate = 0;
  std::uint64_t seed = 0;
  std::uint64_t site = 0;
  std::size_t row = 0;
  SequencePart part = {};
  std::size_t batch = 1;
};
TensorId dropped(Writer&, std::string_view name, TensorId, const Dropout&);

}  // namespace trellis::train
