// Numbers the collectives of a core in each group. Only collectives of the same number meet, so that a member who comes
// after the others have given up does not meet their next one.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace trellis::device::nrt {

class CollectiveSequenceNumbers {
 public:
  // Returns add(number). The number is used up unless that throws.
  template <class Add>
  auto add(std::uint32_t vnc, const std::string& group, Add&& add) {
    const std::lock_guard lock(mutex_);
    std::uint64_t& next = next_[vnc][group];
    const auto sequence = add(next);
    ++next;
    return sequence;
  }
  void forget(std::uint32_t vnc) {  // its communicator begins anew
    const std::lock_guard lock(mutex_);
    next_.erase(vnc);
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, std::map<std::string, std::uint64_t>> next_;
};

}  // namespace trellis::device::nrt
