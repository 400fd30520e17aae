// Checks of what torch passes to an operation.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace trellis::process_group {

inline const at::Tensor& only(const char* what, const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "trellis: ", what, " takes one tensor, not ", tensors.size());
  return tensors.front();
}

inline const std::vector<at::Tensor>& only(const char* what, const std::vector<std::vector<at::Tensor>>& lists,
                                           int size) {
  TORCH_CHECK_VALUE(lists.size() == 1 && static_cast<int>(lists.front().size()) == size, "trellis: ", what,
                    " takes one list of ", size, " tensors");
  return lists.front();
}

inline void check_dense(const char* what, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "trellis: ", what, " takes dense tensors, not ", tensor.layout());
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), "trellis: ", what, " takes CPU tensors, not ", tensor.device());
}

// Checks that `large` has as many elements as `blocks` of `small`.
inline void check_blocks(const char* what, const at::Tensor& large, const at::Tensor& small, int blocks) {
  check_dense(what, large);
  check_dense(what, small);
  TORCH_CHECK_VALUE(large.numel() == small.numel() * blocks, "trellis: ", what, ": one tensor has ", large.numel(),
                    " elements, expected ", blocks, " times the other's ", small.numel());
  TORCH_CHECK_VALUE(large.scalar_type() == small.scalar_type(), "trellis: ", what, ": one tensor is ",
                    large.scalar_type(), ", the other ", small.scalar_type());
}

inline std::uint64_t bytes_of(const std::vector<at::Tensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

}  // namespace trellis::process_group
