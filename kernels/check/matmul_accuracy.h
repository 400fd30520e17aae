// Checks that matrix products on this machine are within matmul_bound of matmul_truth.
#pragma once

#include <span>

#include "kernels/layers/matmul.h"

namespace trellis::kernels {

struct MatmulTypes {
  DType from, to;
};

std::span<const MatmulTypes> products();  // the pairs of types that matmul takes

// Checks a few shapes, with either factor stored plainly and transposed.
bool agrees(const MatmulTypes&);

}  // namespace trellis::kernels
