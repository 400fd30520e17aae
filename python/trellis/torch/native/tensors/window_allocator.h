// Tensors in memory that peers read directly.
#pragma once

#include <memory>

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

namespace trellis::process_group {

std::shared_ptr<c10::Allocator> window_allocator();
at::Tensor tensor_in_window(at::IntArrayRef sizes, at::TensorOptions);
void use_window_for_tensors(bool);  // from now on torch's CPU tensors of at least window_bytes come from there, or not

inline constexpr std::size_t window_bytes = 64 << 10;  // smaller messages are as fast from any memory

}  // namespace trellis::process_group
