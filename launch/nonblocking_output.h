// An output of this process that ranks share. It never blocks: output that is not accepted waits here.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>
#include <string_view>

namespace trellis::launch {

class NonblockingOutput {
 public:
  explicit NonblockingOutput(int number) : number_(number), coloured_(isatty(number) != 0) {}

  void add(std::string_view text) {
    if (!broken_) waiting_.append(text);
  }
  bool full() const { return waiting_.size() > most_waiting; }
  bool idle() const { return waiting_.empty(); }
  int broken() const { return broken_; }  // errno
  bool coloured() const { return coloured_; }
  pollfd polled() const { return {idle() ? -1 : number_, POLLOUT, 0}; }

  // Call it when poll reports it ready. Writes no more than a pipe then accepts without blocking.
  void write_some() {
    const ssize_t wrote = write(number_, waiting_.data(), std::min<std::size_t>(waiting_.size(), PIPE_BUF));
    if (wrote >= 0) {
      waiting_.erase(0, static_cast<std::size_t>(wrote));
    } else if (errno != EINTR && errno != EAGAIN) {
      broken_ = errno;
      waiting_.clear();
    }
  }

 private:
  static constexpr std::size_t most_waiting = std::size_t{1} << 20;  // bytes, of an output that is slow to accept them
  int number_;
  bool coloured_;
  int broken_ = 0;
  std::string waiting_;
};

}  // namespace trellis::launch
