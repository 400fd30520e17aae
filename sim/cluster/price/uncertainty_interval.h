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

struct UncertaintyInterval {
  Time low = 0, high = 0;                  // all sensitivities combined, as if they were independent
  std::vector<Sensitivity> sensitivities;  // the widest first; figures without effect are left out
  bool all_tried = true;                   // false: some are missing, as it was stopped or a time was too long
};

UncertaintyInterval interval(const CompiledSchedule&, const MachineSpec&, const PriceOptions&, Time middle);
// The interval of any time that depends on a machine. `time_on` computes it, and returns `forever` if it was stopped;
// several threads call it at once, one for each processor. `era`: empty: the usual one. Tries the figures that matter
// to collectives, and those that change the time of computations: `computes_alike` returns whether they take the usual
// time on a changed machine; empty: nothing is computed.
UncertaintyInterval interval(const MachineSpec&, std::string_view era, Time middle,
                             const std::function<Time(const Machine&)>& time_on,
                             const std::function<bool(const Machine&)>& computes_alike = {});

// The low end of a time if independent causes each shorten it from `middle` to one of `lows`. The reductions add up as
// the root of the sum of their squares, but what is left is at least the product of the fractions that each leaves.
// Above 0 if all of `lows` are.
Time low_end(Time middle, std::span<const Time> lows);

// Widens the interval by the error that such answers have against published records (error_range(kind)), which then
// stands among the sensitivities. Without records of the kind it stays as it is.
UncertaintyInterval with_model_error(UncertaintyInterval, Time middle, std::string_view kind);

}  // namespace trellis::sim
