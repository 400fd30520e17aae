// Orders the calls to one listener: each caller takes a turn, and connects only when all earlier turns have ended (the
// listener has taken those calls, or their callers have given up), so that calls arrive in the order of their turns.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "net/socket.h"

namespace trellis::device {

class ConnectTurns {
 public:
  std::uint64_t take() {
    const std::lock_guard lock(mutex_);
    return *open_.insert(open_.end(), ++taken_);
  }
  // Returns when the turn has come (true), at the deadline, or once `ending` is set and wake() was called.
  bool wait(std::uint64_t turn, net::Deadline until, const std::atomic<bool>& ending) {
    std::unique_lock lock(mutex_);
    const auto has_come = [&] { return *open_.begin() == turn; };
    changed_.wait_until(lock, until, [&] { return ending || has_come(); });
    return has_come();
  }
  void wake() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  void end(std::uint64_t turn) {
    const std::lock_guard lock(mutex_);
    open_.erase(turn);
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t taken_ = 0;
  std::set<std::uint64_t> open_;
};

// One turn. It ends with this object, if it has not ended before.
class ConnectTurn {
 public:
  explicit ConnectTurn(std::shared_ptr<ConnectTurns> of) : of_(std::move(of)), number_(of_->take()) {}
  ~ConnectTurn() { end(); }
  ConnectTurn(const ConnectTurn&) = delete;
  ConnectTurn& operator=(const ConnectTurn&) = delete;
  bool wait(net::Deadline until, const std::atomic<bool>& ending) { return of_->wait(number_, until, ending); }
  void wake() { of_->wake(); }
  void end() { of_->end(number_); }

 private:
  const std::shared_ptr<ConnectTurns> of_;
  const std::uint64_t number_;
};

}  // namespace trellis::device
