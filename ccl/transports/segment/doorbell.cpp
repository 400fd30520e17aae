#include "ccl/transports/segment/doorbell.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <mutex>
#include <system_error>

#include "ccl/thread_without_signals.h"

namespace trellis::ccl {
namespace {

// Whether the kernel runs a memory barrier in this process's threads when a sleeper asks for it (membarrier).
std::atomic<bool>& kernel_barriers() {
  static constinit std::atomic<bool> there = false;
  return there;
}

void* address(std::atomic<std::uint32_t>& word) { return static_cast<void*>(&word); }

}  // namespace

void prepare_bells() {
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      thread_without_signals([] {
        if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0)
          kernel_barriers().store(true, std::memory_order_release);
      }).detach();
    } catch (const std::system_error&) {  // no thread available: use fences
    }
  });
}

// A fence, and the kernel's barrier in every process that has registered for it. The fence is for ringers in processes
// that have not, or not yet: they use one, too. Ringers in registered processes skip theirs.
void Doorbell::barrier_everywhere() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

void Doorbell::ring_if_sleeping() {
  if (!kernel_barriers().load(std::memory_order_acquire)) std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (sleeping.load(std::memory_order_relaxed) != 0) ring();
}

void Doorbell::ring() {
  rings.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, address(rings), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Doorbell::wait(std::uint32_t heard, std::chrono::nanoseconds most) {
  const timespec time = {.tv_sec = most.count() / 1'000'000'000, .tv_nsec = most.count() % 1'000'000'000};
  syscall(SYS_futex, address(rings), FUTEX_WAIT, heard, &time, nullptr, 0);
}

}  // namespace trellis::ccl
