// What goes wrong between ranks. The caller's own mistakes are std::invalid_argument, those of the system
// std::system_error.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace trellis::ccl {

using Rank = std::int32_t;
using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;  // every wait has one

// A rank died, froze, or never came.
struct PeerLost : std::runtime_error {
  PeerLost(Rank lost, std::int64_t at_step, const std::string& text)
      : std::runtime_error(text), rank(lost), step(at_step) {}
  Rank rank;
  std::int64_t step;  // of the program that this rank was running; -1: none
};

// Ranks called different things: the operations, types, counts or roots do not fit each other.
struct Mismatch : std::invalid_argument {
  Mismatch(Rank other, const std::string& text) : std::invalid_argument(text), rank(other) {}
  Rank rank;  // whose call differs from ours
};

// The communicator was aborted, here or by another rank.
struct Aborted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What was waited for did not come in time, and nobody in particular is known to be at fault.
struct TimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace trellis::ccl
