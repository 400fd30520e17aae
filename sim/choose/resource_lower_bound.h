// A lower bound on the time for which one shared resource is needed. Work that can only begin late must fit in after
// that time; work that has much after it must be done before.
#pragma once

#include <algorithm>
#include <array>

#include "sim/time/units.h"

namespace trellis::sim {

class ResourceLowerBound {
 public:
  static constexpr Time windows = 16;

  // `longest`: upper limit of all heads and tails that are added.
  explicit ResourceLowerBound(Time longest) : length_(longest / windows + 1) {}

  // Adds seconds of use that begin no earlier than `head` and are followed by at least `tail`.
  void add(double seconds, Time head, Time tail) {
    late_[static_cast<std::size_t>(head / length_)] += seconds;
    followed_[static_cast<std::size_t>(tail / length_)] += seconds;
    head_ = std::min(head_, head), tail_ = std::min(tail_, tail);
  }

  Time least() const { return std::max(most(late_) + tail_, most(followed_) + head_); }

 private:
  using Seconds = std::array<double, windows>;
  // Times are rounded to picoseconds at every event, so a sum may exceed the simulated time by a trace.
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
  Time head_ = forever, tail_ = forever;  // minima over all that was added
};

}  // namespace trellis::sim
