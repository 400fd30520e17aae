// How sure a price is: it is worked out again with each figure of the machine that is not documented at both ends of
// its range.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/price.h"

namespace trellis::sim {

// What one figure does to the time.
struct Sway {
  std::string figure;
  std::string low_text, high_text;  // its range
  Time low = 0, high = 0;           // of the time, at its ends: low <= high
  Time width() const { return high - low; }
};

struct Interval {
  Time low = 0, high = 0;   // every figure's sway, as if they were independent
  std::vector<Sway> sways;  // the widest first; those that do nothing are left out
  bool all_tried = true;    // false: stopped before the end, and some figures are left out
};

Interval interval(const Pattern&, const MachineSpec&, const PriceOptions&, Time middle);
// Of any time that a machine makes: `time_on` works it out, `forever` where it was stopped, and is asked by a thread
// for each processor at once. `era`: empty: the usual one.
Interval interval(const MachineSpec&, std::string_view era, Time middle,
                  const std::function<Time(const Machine&)>& time_on);

}  // namespace trellis::sim
