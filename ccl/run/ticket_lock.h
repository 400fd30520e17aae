// Ticket lock: a communicator's operations run in the order of their calls, whatever streams they are on. A process
// that was forked from the one that made the communicator gets no ticket.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>

#include "device/fork_mark.h"

namespace trellis::ccl {

class TicketLock {
 public:
  // A place in the queue, taken at the call. Destroying it unused counts as done.
  class Ticket {
   public:
    explicit Ticket(TicketLock& tickets) : queue_(tickets), number_(tickets.take()) {}
    ~Ticket() { queue_.done(number_); }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    void wait() { queue_.wait(number_); }

   private:
    TicketLock& queue_;
    std::uint64_t number_;
  };

  // The same by number, for callers that store it: take() once, wait() at most once, done() once.
  // Throws device::Forked.
  std::uint64_t take() {
    expect_same_process();
    return issued_.fetch_add(1);
  }
  // A ticket whose turn is now, or none.
  std::optional<std::uint64_t> take_if_free() {
    skip_early();
    const std::uint64_t current = current_.load(std::memory_order_acquire);
    std::uint64_t next = current;
    if (!issued_.compare_exchange_strong(next, current + 1)) return std::nullopt;
    return current;
  }
  // Whether this process was forked from the one whose queue this is.
  bool forked() const { return mark_.forked(); }
  void expect_same_process() const { mark_.expect_same_process("communicator"); }
  bool empty() {
    skip_early();
    return current_.load(std::memory_order_acquire) == issued_.load(std::memory_order_acquire);
  }
  bool has_come(std::uint64_t number) {  // the turn of this number
    skip_early();
    return current_.load(std::memory_order_acquire) == number;
  }
  void wait(std::uint64_t number) {
    if (current_.load(std::memory_order_acquire) != number) wait_long(number);
  }
  // Passes the turn on. If turns end in order and nobody waits, this takes no lock, and needs no fence between the
  // store and the load. A waiter that it misses because of that looks again after a millisecond.
  void done(std::uint64_t number) {
    if (current_.load(std::memory_order_relaxed) == number) {
      current_.store(number + 1, std::memory_order_release);
      if (others_.load(std::memory_order_relaxed) == 0) return;
    }
    const std::lock_guard lock(mutex_);
    if (current_ <= number) {
      early_.insert(number);
      ++others_;
    }
    move_on();
    changed_.notify_all();
  }

 private:
  void wait_long(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    ++others_;
    for (move_on(); current_ != number; move_on()) changed_.wait_for(lock, std::chrono::milliseconds(1));
    --others_;
  }

  // Catches up with tickets that were done early: without a fence, done() may miss one that ends at the same moment.
  void skip_early() {
    if (others_.load() == 0) return;
    const std::lock_guard lock(mutex_);
    move_on();
  }

  // Skips tickets that were done early. Call with the lock held.
  void move_on() {
    while (!early_.empty() && *early_.begin() == current_) {
      early_.erase(early_.begin());
      --others_;
      ++current_;
    }
  }

  std::atomic<std::uint64_t> issued_ = 0, current_ = 0;
  std::atomic<std::uint32_t> others_ = 0;
  const device::ForkMark mark_ = {};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::uint64_t> early_;
};

}  // namespace trellis::ccl
