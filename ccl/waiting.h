// Sleeping in the kernel until another core or process says that something has changed.
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

// Rung by whoever changes something that the owner may sleep for. It lies in memory that all of them see.
struct alignas(128) Bell {
  std::atomic<std::uint32_t> rings = 0;
  std::atomic<std::uint32_t> sleeping = 0;

  // After the change was stored. Costs a load unless the owner sleeps: see sleep().
  void ring_if_sleeping();
  void ring();

  // Sleeps unless nothing_new() says otherwise, for at most so long. What another core stored before it looked at
  // `sleeping` is visible to nothing_new(): a barrier that the kernel puts into every running thread of every process
  // that uses this stands for the fence that ring_if_sleeping() does not have.
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

// Once a process, before its first Bell: asks the kernel for such barriers. That can take it tens of milliseconds, so
// nobody waits; until then, and where there are none, bells use fences.
void prepare_bells();

}  // namespace trellis::ccl
