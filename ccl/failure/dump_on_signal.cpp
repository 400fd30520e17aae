#include "ccl/failure/dump_on_signal.h"

#include <poll.h>
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

#include "ccl/thread_without_signals.h"
#include "ccl/timestamp_clock.h"
#include "device/fork_safe_singleton.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 2s;                  // for running operations; `trellis launch` waits longer before it kills
constexpr auto soon = 50ms;                    // enough for a waiting operation to write
constexpr int hold_times = 100, hold_ms = 10;  // most sleeps of hold(), and the length of each

// The only state that the handler touches.
std::atomic<std::uint32_t> requests = 0;
std::atomic<std::uint64_t> asked_at = 0;  // time of the last request
std::atomic<int> ending = 0;              // the signal that asked to end the process
std::atomic<bool> let_go = false;         // releases the thread that took that signal
std::atomic<pid_t> served_in = 0;         // the process that has a thread serving requests
std::atomic<sem_t*> waits_on = nullptr;
static_assert(std::atomic<std::uint32_t>::is_always_lock_free && std::atomic<sem_t*>::is_always_lock_free);

void end_by(int signal) {
  ::signal(signal, SIG_DFL);  // NOLINT(bugprone-signal-handler): POSIX allows it
  kill(getpid(), signal);
}

// Requests dumps; `by`: the signal that ends the process, or 0. Whoever sees the new count also sees the time and the
// signal.
void ask(int by) {
  if (ending == 0) {
    asked_at = TimestampClock::now();
    ending = by;
  }
  requests.fetch_add(1);
}

// Keeps the thread in the handler. The signal would have ended the process at once, so a system call that it interrupts
// must not return to the program, which would take that for a timeout. The wait is limited, since this thread may hold
// what writing the dumps needs: an operation or a lock.
void hold() {
  for (int i = 0; i < hold_times && !let_go; ++i) poll(nullptr, 0, hold_ms);
}

// A forked process inherits the handler but has no serving thread.
void heed(int signal) {
  const int error = errno;
  if (served_in.load() != getpid()) {
    if (signal != SIGUSR2) end_by(signal);
  } else {
    ask(signal != SIGUSR2 ? signal : 0);
    sem_post(waits_on);
    if (signal != SIGUSR2) hold();
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

  void add(SignalDumpTarget& d) {
    const std::lock_guard lock(mutex_);
    if (!serving_) begin_to_serve();
    all_.push_back(&d);
  }
  void remove(SignalDumpTarget& d) {
    const std::lock_guard lock(mutex_);
    std::erase(all_, &d);
  }
  void ask_others(const SignalDumpTarget& than) {
    ask(0);
    const std::uint32_t request = requests;
    const std::lock_guard lock(mutex_);
    for (SignalDumpTarget* d : all_)
      if (d != &than) d->dump_for(request);
  }

 private:
  void begin_to_serve() {
    thread_without_signals([this] { serve(); }).detach();
    serving_ = true;
    waits_on = &asked_;
    served_in = getpid();
    for (const int signal : {SIGUSR2, SIGTERM, SIGINT}) hear(signal);
  }

  [[noreturn]] void serve() {
    for (;;) {
      while (sem_wait(&asked_) != 0) {
      }
      const auto began = std::chrono::steady_clock::now();
      for (auto passed = 0ns; !all_did(requests) && passed < patience;
           passed = std::chrono::steady_clock::now() - began) {
        if (passed > soon) let_go = true;
        std::this_thread::sleep_for(5ms);
      }
      if (const int signal = ending; signal != 0) {
        end_by(signal);
        let_go = true;  // the signal may be blocked until the held thread leaves its handler
      }
    }
  }

  bool all_did(std::uint32_t request) {
    const std::lock_guard lock(mutex_);
    // Each is asked, even after one that could not write.
    return std::ranges::count_if(all_, [&](SignalDumpTarget* d) { return !d->dump_for(request); }) == 0;
  }

  std::mutex mutex_;
  std::vector<SignalDumpTarget*> all_;
  bool serving_ = false;
  sem_t asked_;
};

Dumps& dumps() {
  return device::of_this_process([] { return new Dumps; });
}

}  // namespace

void register_for_dumps(SignalDumpTarget& d) { dumps().add(d); }
void unregister_from_dumps(SignalDumpTarget& d) { dumps().remove(d); }
std::uint32_t dumps_requested() { return requests.load(std::memory_order_relaxed); }
DumpRequest dump_request() {
  const int signal = ending;  // read first: once it is not 0, asked_at no longer changes
  return {asked_at, signal};
}
void dump_others(const SignalDumpTarget& failed) { dumps().ask_others(failed); }

}  // namespace trellis::ccl
