// Blocks SIGINT and SIGTERM, so that a long sweep can poll for them and still return the results that it has.
#pragma once

#include <csignal>

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

}  // namespace trellis::tools
