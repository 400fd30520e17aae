// Tensors of a NeuronCore by address: which tensor an address is in, and where.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "device/neuron/runtime.h"

namespace trellis::device {

struct TensorLocation {
  nrt::Tensor* tensor = nullptr;
  std::size_t offset = 0;
};

class TensorsByAddress {
 public:
  void add(void* at, std::size_t bytes, nrt::Tensor*);
  nrt::Tensor* remove(const void* at);  // null: no tensor begins there
  std::vector<const void*> all() const;
  // Throws invalid_argument when the range begins in a tensor and goes past its end. None: it is the host's.
  std::optional<TensorLocation> find(const void* at, std::size_t bytes) const;

 private:
  struct MemoryPiece {
    std::size_t bytes = 0;
    nrt::Tensor* tensor = nullptr;
  };
  mutable std::mutex mutex_;
  std::map<const std::byte*, MemoryPiece> pieces_;
};

}  // namespace trellis::device
