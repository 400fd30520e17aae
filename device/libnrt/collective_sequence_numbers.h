// Numbers the collectives of a core in each group. Only collectives of the same number are matched, so that a member
// who comes after the others have given up is not matched with their next one.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace trellis::device::nrt {

class CollectiveSequenceNumbers {
 public:
  // Returns add(N), where N is the group's next number. If add() throws, N stays the next number.
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
