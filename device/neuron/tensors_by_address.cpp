#include "device/neuron/tensors_by_address.h"

namespace trellis::device {

void TensorsByAddress::add(void* at, std::size_t bytes, nrt::Tensor* tensor) {
  const std::lock_guard lock(mutex_);
  pieces_.insert_or_assign(static_cast<const std::byte*>(at), MemoryPiece{bytes, tensor});
}

nrt::Tensor* TensorsByAddress::remove(const void* at) {
  const std::lock_guard lock(mutex_);
  const auto found = pieces_.find(static_cast<const std::byte*>(at));
  if (found == pieces_.end()) return nullptr;
  nrt::Tensor* const tensor = found->second.tensor;
  pieces_.erase(found);
  return tensor;
}

std::vector<const void*> TensorsByAddress::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<const void*> out;
  for (const auto& [at, piece] : pieces_) out.push_back(at);
  return out;
}

std::optional<TensorLocation> TensorsByAddress::find(const void* at, std::size_t bytes) const {
  const auto* const byte = static_cast<const std::byte*>(at);
  const std::lock_guard lock(mutex_);
  const auto after = pieces_.upper_bound(byte);
  if (after == pieces_.begin()) return std::nullopt;
  const auto& [begin, piece] = *std::prev(after);
  const MemoryPiece& p = piece;
  if (byte >= begin + p.bytes) return std::nullopt;
  const device::MemoryPiece whole{begin, p.bytes};
  expect_within("neuron", {byte, bytes}, &whole);
  return TensorLocation{p.tensor, static_cast<std::size_t>(byte - begin)};
}

}  // namespace trellis::device
