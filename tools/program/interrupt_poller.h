// Blocks SIGINT and SIGTERM, so that a long sweep can poll for them and still return the results that it has; and what
// threads do about them meanwhile.
#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace trellis::tools {

class InterruptPoller {
 public:
  // Construct it before other threads, which inherit the blocked signals.
  InterruptPoller() {
    sigemptyset(&ours_);
    sigaddset(&ours_, SIGINT);
    sigaddset(&ours_, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ours_, &before_);
  }
  ~InterruptPoller() {
    const timespec at_once = {};
    while (sigtimedwait(&ours_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  InterruptPoller(const InterruptPoller&) = delete;
  InterruptPoller& operator=(const InterruptPoller&) = delete;

  bool asked() const {
    sigset_t waiting;
    return sigpending(&waiting) == 0 && (sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1);
  }

 private:
  sigset_t ours_ = {}, before_ = {};
};

// As long as it lives, SIGINT and SIGTERM end the process although a poller blocks them: there is nothing yet that the
// process could keep.
class EndedBySignals {
 public:
  EndedBySignals() : thread_(take) {}

 private:
  // This thread alone does not block them, so the kernel delivers them to it.
  static void take(const std::stop_token& stop) {
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, stop, [] { return false; });
  }

  std::jthread thread_;
};

// Calls `act` once, in a thread of its own, soon after a signal: for work that waits where it can't poll. It looks
// seldom, since that work may be what is measured.
class InterruptWatch {
 public:
  InterruptWatch(const InterruptPoller& interrupts, std::function<void()> act)
      : thread_([&interrupts, act = std::move(act)](const std::stop_token& stop) {
          constexpr std::chrono::milliseconds look{200};
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any changed;
          while (!changed.wait_for(lock, stop, look, [&] { return stop.stop_requested(); }))
            if (interrupts.asked()) return act();
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace trellis::tools
