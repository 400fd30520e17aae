// How long a waiting rank yields its core before it sleeps: a number of turns, which take a fraction of a millisecond
// where it has the core to itself. Where many ranks share a core, each turn takes as long as all of theirs together, so
// time is limited, too: a rank that yields does not check on the others, and takes turns that ranks with work could
// use.
#pragma once

#include <chrono>
#include <cstdint>

#include "ccl/errors.h"

namespace trellis::ccl {

class YieldBudget {
 public:
  static constexpr std::uint32_t most_turns = 400;
  static constexpr std::chrono::milliseconds longest{1};

  explicit YieldBudget(std::uint32_t turns = most_turns, std::chrono::milliseconds time = longest)
      : turns_(turns), time_(time) {}

  // Called before each turn, numbered from 0. False: it is time to sleep.
  bool goes_on(std::uint32_t turn, Deadline now) {
    if (turn == 0) begun_ = now;
    return turn < turns_ && now - begun_ < time_;
  }

 private:
  std::uint32_t turns_;
  std::chrono::milliseconds time_;
  Deadline begun_ = {};
};

}  // namespace trellis::ccl
