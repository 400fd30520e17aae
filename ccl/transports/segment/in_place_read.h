// InPlaceRead: a read of senders' memory by a thread of their own process. While it lasts, a sender that withdraws its
// data waits, since its memory may be unmapped afterwards.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "ccl/transports/segment/peer_memory_access.h"
#include "ccl/transports/segment/segment.h"

namespace trellis::ccl {

class InPlaceRead {
 public:
  // The counter that this rank's reads use; null where readers have mappings of their own, so that nobody need wait.
  static std::atomic<std::uint32_t>* counter(const Segment& segment, Rank reader, const PeerMemoryAccess& reach) {
    return reach.shares_mappings() ? &segment.area(reader).in_place_reads : nullptr;
  }
  explicit InPlaceRead(std::atomic<std::uint32_t>* counter) : counter_(counter) {
    if (counter_ == nullptr) return;
    counter_->fetch_add(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // before it looks whether the sender has withdrawn its data
  }
  ~InPlaceRead() {
    if (counter_ != nullptr) counter_->fetch_add(1, std::memory_order_release);
  }
  InPlaceRead(const InPlaceRead&) = delete;
  InPlaceRead& operator=(const InPlaceRead&) = delete;

  // Returns once each read that has begun has ended. Call it after a seq_cst fence that follows the withdrawal.
  static void await_end(const std::atomic<std::uint32_t>& counter) {
    const std::uint32_t begun = counter.load(std::memory_order_acquire);
    if (begun % 2 == 0) return;
    while (counter.load(std::memory_order_acquire) == begun) sched_yield();
  }

 private:
  std::atomic<std::uint32_t>* const counter_;
};

}  // namespace trellis::ccl
