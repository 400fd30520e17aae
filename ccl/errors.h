// Errors between ranks, thrown by communicators. A caller's own mistake is std::invalid_argument, an error of the
// operating system is std::system_error.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace trellis::ccl {

using Rank = std::int32_t;
using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;  // every wait has a deadline

// A rank died, stopped responding, or never came.
struct PeerLost : std::runtime_error {
  PeerLost(Rank lost, std::int64_t at_step, const std::string& text)
      : std::runtime_error(text), rank(lost), step(at_step) {}
  Rank rank;
  std::int64_t step;  // step of the program that this rank was running; -1: none
};

// Ranks made different calls: operations, types, counts or roots do not match.
struct Mismatch : std::invalid_argument {
  Mismatch(Rank other, const std::string& text) : std::invalid_argument(text), rank(other) {}
  Rank rank;  // the rank whose call differs from ours
};

// The communicator was aborted, here or by another rank.
struct Aborted : std::runtime_error {
  explicit Aborted(const std::string& text, Rank aborter = -1) : std::runtime_error(text), by(aborter) {}
  Rank by;  // -1: no rank asked for it; an operation that this one had to follow has failed
};

// What a rank sent was changed on its way here, as its checksum shows.
struct DataCorrupted : std::runtime_error {
  DataCorrupted(Rank sender, const std::string& text) : std::runtime_error(text), rank(sender) {}
  Rank rank;  // that sent it; -1: it can't be told
};

// A wait reached its deadline, and no particular rank is known to be at fault.
struct TimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace trellis::ccl
