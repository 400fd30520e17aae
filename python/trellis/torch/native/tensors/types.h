// Torch's element types and reductions as ours.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <optional>

#include "ccl/communicator.h"

namespace trellis::process_group {

// An element of torch's is `each` elements of ours.
struct TorchElements {
  kernels::DType type = kernels::DType::u8;
  std::size_t each = 1;
};

// How to move data of this type, whichever it is, unchanged.
TorchElements moved(at::ScalarType);

struct TorchReduction {
  TorchElements elements;
  ccl::ReduceOp op;
};

// None: no kernel does this reduction, so ranks exchange the data unchanged and reduce it by folded(). Throws
// ValueError for what has no meaning, such as the maximum of complex numbers, or the average of integers.
std::optional<TorchReduction> reduction_of(at::ScalarType, const c10d::ReduceOp&);

// blocks[0] op blocks[1] op ..., along the first dimension: bitwise operations and products of complex numbers.
at::Tensor folded(const at::Tensor& blocks, const c10d::ReduceOp&);

}  // namespace trellis::process_group
