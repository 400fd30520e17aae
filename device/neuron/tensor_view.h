// A tensor that stands for a range of memory, as long as this lives: a slice of one of the device's tensors, or an
// empty tensor to which host memory is attached.
#pragma once

#include <string>
#include <utility>

#include "device/neuron/tensors_by_address.h"

namespace trellis::device {

class TensorView {
 public:
  TensorView(const NeuronRuntime&, const TensorsByAddress&, const void* data, std::size_t bytes,
             const std::string& name);
  TensorView(TensorView&& other) noexcept : library_(other.library_), tensor_(std::exchange(other.tensor_, nullptr)) {}
  TensorView& operator=(TensorView&&) = delete;
  ~TensorView();
  nrt::Tensor* tensor() const { return tensor_; }

 private:
  const nrt::NrtLibrary& library_;
  nrt::Tensor* tensor_ = nullptr;
};

}  // namespace trellis::device
