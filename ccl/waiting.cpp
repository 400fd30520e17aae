#include "ccl/waiting.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace trellis::ccl {
namespace {

// Decided once, before the first use.
bool kernel_barriers() {
  static const bool there = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  return there;
}

void* address(std::atomic<std::uint32_t>& word) { return static_cast<void*>(&word); }

}  // namespace

void prepare_bells() { kernel_barriers(); }

// Both sides fence as well: a peer may run where the kernel has no such barriers. The sleeper's costs nothing that
// counts; the ringer's is left out where the kernel does it.
void Bell::barrier_everywhere() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (kernel_barriers()) syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

void Bell::ring_if_sleeping() {
  if (!kernel_barriers()) std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (sleeping.load(std::memory_order_relaxed) != 0) ring();
}

void Bell::ring() {
  rings.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, address(rings), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Bell::wait(std::uint32_t heard, std::chrono::nanoseconds most) {
  const timespec time = {.tv_sec = most.count() / 1'000'000'000, .tv_nsec = most.count() % 1'000'000'000};
  syscall(SYS_futex, address(rings), FUTEX_WAIT, heard, &time, nullptr, 0);
}

}  // namespace trellis::ccl
