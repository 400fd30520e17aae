// Ctrl-C in calls that take long and have released the GIL. Python runs handlers of signals in its main thread alone.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <semaphore>
#include <thread>

#include "python/binding/module_parts.h"
#include "sim/cluster/answer/progress_monitor.h"

namespace trellis::binding {

inline constexpr std::chrono::milliseconds between_looks_for_signals{100};

// Runs work on another thread if called in the main thread, which polls for signals meanwhile; else runs it in the
// caller.
class SignalWatcher {
 public:
  bool raised() const { return raised_; }  // a handler has raised an exception: the work should end

  // Call it with the GIL held: the work is done without it. If a handler has raised an exception, this throws that, and
  // what the work throws is dropped.
  template <class Work>
  void watch(Work&& work) {
    {
      const nb::gil_scoped_release others_may_run;
      if (syscall(SYS_gettid) == getpid())
        work_beside(work);
      else
        work();
    }
    if (raised_) throw nb::python_error();
  }

 private:
  template <class Work>
  void work_beside(Work& work) {
    std::exception_ptr failed;
    std::binary_semaphore ended(0);
    {
      const std::jthread worker([&] {
        try {
          work();
        } catch (...) {
          failed = std::current_exception();
        }
        ended.release();
      });
      while (!ended.try_acquire_for(between_looks_for_signals)) look();
    }
    if (failed && !raised_) std::rethrow_exception(failed);
  }
  void look() {
    if (raised_) return;
    const nb::gil_scoped_acquire for_handlers;
    raised_ = PyErr_CheckSignals() != 0;
  }
  std::atomic<bool> raised_ = false;
};

class StopOnSignal : public sim::ProgressMonitor {
 public:
  explicit StopOnSignal(const SignalWatcher& signals) : signals_(signals) {}
  void begin(std::string) override {}
  bool stopped(sim::Time, double) override { return signals_.raised(); }
  bool interrupted() const override { return signals_.raised(); }

 private:
  const SignalWatcher& signals_;
};

}  // namespace trellis::binding
