// Operations of a communicator run in the order in which they were called, whatever streams they were given to.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>

namespace trellis::ccl {

class Turns {
 public:
  // A place in the order, taken at the call. Going without having been used counts as done.
  class Turn {
   public:
    explicit Turn(Turns& turns) : turns_(turns), number_(turns.take()) {}
    ~Turn() { turns_.done(number_); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    void wait() { turns_.wait(number_); }

   private:
    Turns& turns_;
    std::uint64_t number_;
  };

  // The same by number, for who keeps it himself: take() once, wait() at most once, done() once.
  std::uint64_t take() { return issued_.fetch_add(1); }
  void wait(std::uint64_t number) {
    if (current_.load(std::memory_order_acquire) != number) wait_long(number);
  }
  // In order and with nobody waiting, a turn takes no lock: whoever waits, or is done early, says so in `others_`
  // before it looks at `current_`, and whoever is done moves `current_` before it looks at `others_`.
  void done(std::uint64_t number) {
    if (current_.load(std::memory_order_relaxed) == number) {
      current_.store(number + 1);
      if (others_.load() == 0) return;
    }
    const std::lock_guard lock(mutex_);
    if (current_ <= number) {
      early_.insert(number);
      ++others_;
    }
    while (!early_.empty() && *early_.begin() == current_) {
      early_.erase(early_.begin());
      --others_;
      ++current_;
    }
    changed_.notify_all();
  }

 private:
  void wait_long(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    ++others_;
    changed_.wait(lock, [&] { return current_ == number; });
    --others_;
  }

  std::atomic<std::uint64_t> issued_ = 0, current_ = 0;
  std::atomic<std::uint32_t> others_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::uint64_t> early_;
};

}  // namespace trellis::ccl
