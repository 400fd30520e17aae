// A lower bound on a schedule's time from one rank of each symmetry class. It is the larger of two: the longest chain,
// where each transfer is as short as the shortest of its class; and the load of the busiest resource. Ranks of a class
// that lie differently in the machine are not simulated one by one, so it is far less work than a run.
#pragma once

#include "sim/price/price.h"

namespace trellis::sim {

// The pattern must not be sized (Pattern::sized). With fewer elements than chunks, all these chunks may be empty.
// Returns `forever` if the bound exceeds the limit.
Time symmetry_lower_bound(const Pattern&, const Machine&, const PriceOptions&, Time limit = forever);

}  // namespace trellis::sim
