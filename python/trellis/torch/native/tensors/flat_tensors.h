// Tensors as contiguous elements in memory: their own memory if that is contiguous, else a copy.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

namespace trellis::process_group {

// One tensor.
class FlatTensor {
 public:
  explicit FlatTensor(const at::Tensor&);

  void* data() const { return flat_.data_ptr(); }
  std::uint64_t bytes() const { return flat_.nbytes(); }
  std::size_t count() const { return static_cast<std::size_t>(flat_.numel()); }
  const at::Tensor& tensor() const { return flat_; }
  void give_back();              // if data() is a copy of the tensor: copies it back
  void fill(const void* bytes);  // writes the whole tensor

 private:
  at::Tensor tensor_, flat_;
};

// Several tensors of one type, one after the other.
class FlatTensorList {
 public:
  enum class For { reading, writing };
  FlatTensorList(const std::vector<at::Tensor>&, For);

  void* data() const { return flat_.data_ptr(); }
  const std::vector<std::size_t>& counts() const { return counts_; }  // of each tensor
  bool even() const;                                                  // all of one size
  const at::Tensor& tensor() const { return flat_; }
  void give_back();

 private:
  bool adjacent() const;
  std::vector<at::Tensor> tensors_;
  std::vector<std::size_t> counts_;
  at::Tensor flat_;
  bool copied_ = true;
};

}  // namespace trellis::process_group
