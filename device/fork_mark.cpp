#include "device/fork_mark.h"

#include <fmt/format.h>
#include <pthread.h>

#include <atomic>

namespace trellis::device {
namespace {

constinit std::atomic<std::uint32_t> count = 0;

}  // namespace

std::uint32_t forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return count.load(std::memory_order_relaxed);
}

void ForkMark::refuse(const char* what) {
  throw Forked(
      fmt::format("this process was forked from the one that made the {0}, and has neither its threads nor its "
                  "connections: use the {0} in that process, or make one here",
                  what));
}

}  // namespace trellis::device
