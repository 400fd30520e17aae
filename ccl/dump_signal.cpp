#include "ccl/dump_signal.h"

#include <signal.h>

#include <atomic>

namespace trellis::ccl {
namespace {

// All that a handler may touch.
std::atomic<std::uint32_t> heard = 0;
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace

void hear_dump_signal() {
  struct sigaction there = {};
  sigaction(SIGUSR2, nullptr, &there);
  if (there.sa_handler != SIG_DFL || (there.sa_flags & SA_SIGINFO) != 0) return;
  there.sa_handler = [](int) { heard.fetch_add(1, std::memory_order_relaxed); };
  there.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &there, nullptr);
}

std::uint32_t dump_signals_heard() { return heard.load(std::memory_order_relaxed); }

}  // namespace trellis::ccl
