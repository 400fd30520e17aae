// Watchdog: finds ranks that have stopped. A rank that is waiting in an operation or a split shows a heartbeat; one
// that has stopped does not.
#pragma once

#include <span>
#include <vector>

#include "ccl/transports/transport.h"

namespace trellis::ccl {

class Watchdog {
 public:
  explicit Watchdog(std::chrono::nanoseconds timeout);
  void restart() { ranks_.clear(); }
  void look(const Transport&);  // call regularly; changes between two calls are missed
  // The one of these that has been in an operation without a heartbeat for the longest time; -1: none for long enough.
  Rank stillest(const Transport&, std::span<const Rank>) const;

 private:
  struct Seen {
    std::uint64_t heartbeat;
    Deadline since;
  };
  const std::chrono::nanoseconds enough_;
  std::vector<Seen> ranks_;  // empty: not started
};

}  // namespace trellis::ccl
