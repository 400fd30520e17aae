// Records which memory the CUDA functions allocated, to tell it from the program's own.
#pragma once

#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

namespace trellis::cuda {

class Allocations {
 public:
  void add(void* begin, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    known_.insert_or_assign(static_cast<const char*>(begin), bytes);
  }
  // Returns the allocation's bytes, or nullopt if no known allocation begins there.
  std::optional<std::size_t> remove(void* begin) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(static_cast<const char*>(begin));
    if (found == known_.end()) return std::nullopt;
    const std::size_t bytes = found->second;
    known_.erase(found);
    return bytes;
  }
  bool have(const void* place) const {
    const auto* const byte = static_cast<const char*>(place);
    const std::lock_guard lock(mutex_);
    const auto after = known_.upper_bound(byte);
    if (after == known_.begin()) return false;
    const auto& [begin, bytes] = *std::prev(after);
    return byte < begin + bytes;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const char*, std::size_t> known_;
};
Allocations& allocations();

}  // namespace trellis::cuda
