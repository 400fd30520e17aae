// How long something takes at least that shares itself among all that it does: what begins late is done after that,
// what much follows is done before it.
#pragma once

#include <algorithm>
#include <array>

#include "sim/units.h"

namespace trellis::sim {

class BusyWindows {
 public:
  static constexpr Time windows = 16;

  // `longest`: of the heads and tails of all that is added.
  explicit BusyWindows(Time longest) : length_(longest / windows + 1) {}

  // So many seconds of it, not begun before `head`, and after whose end `tail` passes.
  void add(double seconds, Time head, Time tail) {
    late_[static_cast<std::size_t>(head / length_)] += seconds;
    followed_[static_cast<std::size_t>(tail / length_)] += seconds;
    head_ = std::min(head_, head), tail_ = std::min(tail_, tail);
  }

  Time least() const { return std::max(most(late_) + tail_, most(followed_) + head_); }

 private:
  using Seconds = std::array<double, windows>;
  // Times are rounded to picoseconds at every event, so that a sum may be more by a trace.
  Time most(const Seconds& of) const {
    constexpr double rounding = 1e-5;
    Time most = 0;
    double sum = 0;
    for (Time i = windows - 1; i >= 0; --i) {
      sum += of[static_cast<std::size_t>(i)];
      if (sum > 0)
        most = std::max(most, i * length_ + static_cast<Time>(sum * static_cast<double>(second) * (1 - rounding)));
    }
    return most;
  }

  Time length_;
  Seconds late_ = {}, followed_ = {};
  Time head_ = forever, tail_ = forever;  // the least
};

}  // namespace trellis::sim
