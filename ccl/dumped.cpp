#include "ccl/dumped.h"

#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "ccl/quiet_thread.h"
#include "device/of_this_process.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 2s;  // with operations that are under way; launch waits for longer before it kills

// All that the handler touches.
std::atomic<std::uint32_t> requests = 0;
std::atomic<int> ending = 0;       // the signal that asked for it
std::atomic<pid_t> served_in = 0;  // the process whose requests somebody waits for
std::atomic<sem_t*> waits_on = nullptr;
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<sem_t*>::is_always_lock_free);

void end_by(int signal) {
  ::signal(signal, SIG_DFL);  // NOLINT(bugprone-signal-handler): POSIX allows it
  kill(getpid(), signal);
}

// A forked process has its parent's handler and nobody who serves it.
void heed(int signal) {
  const int error = errno;
  if (served_in.load() != getpid()) {
    if (signal != SIGUSR2) end_by(signal);
  } else {
    if (signal != SIGUSR2) ending = signal;
    requests.fetch_add(1);
    sem_post(waits_on);
  }
  errno = error;
}

void hear(int signal) {
  struct sigaction there = {};
  sigaction(signal, nullptr, &there);
  if (there.sa_handler != SIG_DFL || (there.sa_flags & SA_SIGINFO) != 0) return;
  there.sa_handler = heed;
  there.sa_flags = SA_RESTART;
  sigaction(signal, &there, nullptr);
}

class Dumps {
 public:
  Dumps() { sem_init(&asked_, 0, 0); }

  void add(Dumped& d) {
    const std::lock_guard lock(mutex_);
    if (!serving_) begin_to_serve();
    all_.push_back(&d);
  }
  void remove(Dumped& d) {
    const std::lock_guard lock(mutex_);
    std::erase(all_, &d);
  }

 private:
  void begin_to_serve() {
    quiet_thread([this] { serve(); }).detach();
    serving_ = true;
    waits_on = &asked_;
    served_in = getpid();
    for (const int signal : {SIGUSR2, SIGTERM, SIGINT}) hear(signal);
  }

  [[noreturn]] void serve() {
    for (;;) {
      while (sem_wait(&asked_) != 0) {
      }
      const auto until = std::chrono::steady_clock::now() + patience;
      while (!all_did(requests) && std::chrono::steady_clock::now() < until) std::this_thread::sleep_for(5ms);
      if (const int signal = ending; signal != 0) end_by(signal);
    }
  }

  bool all_did(std::uint32_t request) {
    const std::lock_guard lock(mutex_);
    // Each is asked, also after one that could not.
    return std::ranges::count_if(all_, [&](Dumped* d) { return !d->dump_for(request); }) == 0;
  }

  std::mutex mutex_;
  std::vector<Dumped*> all_;
  bool serving_ = false;
  sem_t asked_;
};

Dumps& dumps() {
  return device::of_this_process([] { return new Dumps; });
}

}  // namespace

void add_dumped(Dumped& d) { dumps().add(d); }
void remove_dumped(Dumped& d) { dumps().remove(d); }
std::uint32_t dumps_requested() { return requests.load(std::memory_order_relaxed); }

}  // namespace trellis::ccl
