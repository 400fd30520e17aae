// The uncertainty of a price: prices again with each figure that is not documented at both ends of its range.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/price/price.h"

namespace trellis::sim {

// How one figure changes the time.
struct Sensitivity {
  std::string figure;
  std::string low_text, high_text;  // the range of the figure
  Time low = 0, high = 0;           // of the time, at the ends of the range: low <= high
  Time width() const { return high - low; }
};

struct Interval {
  Time low = 0, high = 0;                  // all sensitivities combined, as if they were independent
  std::vector<Sensitivity> sensitivities;  // the widest first; figures without effect are left out
  bool all_tried = true;                   // false: stopped early, so some figures are missing
};

Interval interval(const CompiledSchedule&, const MachineSpec&, const PriceOptions&, Time middle);
// For any time that depends on a machine. `time_on` computes it, and returns `forever` if it was stopped; one thread
// for each processor calls it at once. `era`: empty: the usual one. Figures of collectives are tried, and those with
// which `computes_alike` says that computations take another time on the machine; empty: nothing is computed.
Interval interval(const MachineSpec&, std::string_view era, Time middle,
                  const std::function<Time(const Machine&)>& time_on,
                  const std::function<bool(const Machine&)>& computes_alike = {});

// Where a time may end that independent causes shorten from `middle` to so much each: by the root of the squares, and
// by no more than if each left its part of what the others leave. Above 0 if all of `lows` are.
Time low_end(Time middle, std::span<const Time> lows);

// Widened by the error that such answers have against published records (error_range(kind)), which then stands among
// the sensitivities. Without records of the kind it stays as it is.
Interval with_model_error(Interval, Time middle, std::string_view kind);

}  // namespace trellis::sim
