// Doorbell: sleep in the kernel (futex) until another core or process signals a change.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace trellis::ccl {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// In shared memory. Rung by whoever changes something that the owner may sleep for.
struct alignas(128) Doorbell {
  std::atomic<std::uint32_t> rings = 0;
  std::atomic<std::uint32_t> sleeping = 0;

  // Call it after the change was stored. Costs one load unless the owner sleeps: see sleep().
  void ring_if_sleeping();
  void ring();

  // Sleeps unless nothing_new() returns false, up to the given time. Stores that another core made before it read
  // `sleeping` are visible to nothing_new(): the kernel runs a barrier in every thread of every process that uses this
  // (membarrier). It replaces the fence that ring_if_sleeping() does not have.
  template <class NothingNew>
  void sleep(std::chrono::nanoseconds most, NothingNew nothing_new) {
    const std::uint32_t heard = rings.load(std::memory_order_acquire);
    sleeping.store(1, std::memory_order_relaxed);
    barrier_everywhere();
    if (nothing_new()) wait(heard, most);
    sleeping.store(0, std::memory_order_relaxed);
  }

 private:
  static void barrier_everywhere();
  void wait(std::uint32_t heard, std::chrono::nanoseconds most);
};

// Asks the kernel for such barriers; call it once per process, before its first Doorbell. Registration can take tens of
// milliseconds and runs in the background. Until it is done, and where there are no such barriers, bells use fences.
void prepare_bells();

}  // namespace trellis::ccl
