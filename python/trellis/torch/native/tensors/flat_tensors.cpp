#include "trellis/torch/native/tensors/flat_tensors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

namespace trellis::process_group {

FlatTensor::FlatTensor(const at::Tensor& tensor) : tensor_(tensor), flat_(tensor.contiguous()) {}

void FlatTensor::give_back() {
  if (!flat_.is_same(tensor_)) tensor_.copy_(flat_);
}

void FlatTensor::fill(const void* bytes) {
  if (flat_.nbytes() > 0) std::memcpy(flat_.data_ptr(), bytes, flat_.nbytes());
  give_back();
}

FlatTensorList::FlatTensorList(const std::vector<at::Tensor>& tensors, For use) : tensors_(tensors) {
  std::int64_t all = 0;
  for (const at::Tensor& tensor : tensors_) {
    TORCH_CHECK_VALUE(tensor.scalar_type() == tensors_.front().scalar_type(), "trellis: tensors of one list are ",
                      tensors_.front().scalar_type(), " and ", tensor.scalar_type());
    counts_.push_back(static_cast<std::size_t>(tensor.numel()));
    all += tensor.numel();
  }
  if (adjacent()) {
    copied_ = false;
    flat_ = tensors_.front().as_strided({all}, {1});
    return;
  }
  flat_ = at::empty({all}, tensors_.front().options());
  if (use == For::writing) return;
  std::int64_t first = 0;
  for (const at::Tensor& tensor : tensors_) {
    flat_.narrow(0, first, tensor.numel()).copy_(tensor.reshape({-1}));
    first += tensor.numel();
  }
}

bool FlatTensorList::adjacent() const {
  const auto* next = static_cast<const std::byte*>(tensors_.front().data_ptr());
  for (const at::Tensor& tensor : tensors_) {
    if (!tensor.is_contiguous() || tensor.data_ptr() != next || !tensor.is_alias_of(tensors_.front())) return false;
    next += tensor.nbytes();
  }
  return true;
}

bool FlatTensorList::even() const {
  return std::ranges::all_of(counts_, [this](std::size_t count) { return count == counts_.front(); });
}

void FlatTensorList::give_back() {
  if (!copied_) return;
  std::int64_t first = 0;
  for (at::Tensor& tensor : tensors_) {
    tensor.copy_(flat_.narrow(0, first, tensor.numel()).view(tensor.sizes()));
    first += tensor.numel();
  }
}

}  // namespace trellis::process_group
