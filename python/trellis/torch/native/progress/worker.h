// Tasks in the order in which they were given: on a thread of their own, or in the caller's when nothing comes before.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace trellis::process_group {

class Worker {
 public:
  using Task = std::function<void()>;  // must not throw

  ~Worker() { stop(); }

  void later(Task);  // the thread is started by the first call
  // Runs it in the caller. false: earlier tasks have not ended, and nothing was done.
  template <class Run>
  bool now(Run&& run) {
    {
      const std::lock_guard lock(mutex_);
      if (busy_ || !tasks_.empty() || stopping_) return false;
      busy_ = true;
    }
    run();
    end();
    return true;
  }
  bool ends_within(std::chrono::milliseconds);  // all tasks
  void stop();                                  // when all tasks have ended; later ones are not accepted

 private:
  void serve();
  void end();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::thread thread_;
  bool busy_ = false, stopping_ = false;
};

}  // namespace trellis::process_group
