#include "tools/answer/ended_by_signals.h"

#include <csignal>

namespace trellis::tools {

// The thread does not block the signals, so the kernel delivers them to it, and they end the process.
EndedBySignals::EndedBySignals()
    : takes_them_([this] {
        sigset_t both;
        sigemptyset(&both);
        sigaddset(&both, SIGINT);
        sigaddset(&both, SIGTERM);
        pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return over_; });
      }) {}

EndedBySignals::~EndedBySignals() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  takes_them_.join();
}

}  // namespace trellis::tools
