// Whether the products that this machine makes are within their bound of the truth.
#pragma once

#include <span>

#include "kernels/layers/matmul.h"

namespace trellis::kernels {

struct Product {
  DType from, to;
};

std::span<const Product> products();  // the pairs of types that matmul takes

// Over all transposes of a few shapes.
bool agrees(const Product&);

}  // namespace trellis::kernels
