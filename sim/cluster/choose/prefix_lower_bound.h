// A lower bound on a schedule's time: the longest chain of steps that wait for each other among the first steps of some
// ranks' programs. The ranks are found from rank 0 backwards: its senders, their senders, and so on. One rank of each
// class is enough, so a few generated steps show a chain through many ranks of a ring or tree.
#pragma once

#include <functional>
#include <memory>

#include "sim/cluster/choose/schedule_cache.h"
#include "sim/cluster/price/price.h"

namespace trellis::sim {

// Returns at least so many of a rank's first steps, or all of them.
using StepsOfRank = std::function<std::shared_ptr<const ProgramPrefix>(Rank, std::size_t)>;

// `steps`: how many steps are generated, of all ranks together. Returns `forever` if the bound exceeds the limit.
// Throws CompilationStopped where the options say stop.
Time prefix_lower_bound(const schedule::Algorithm&, const schedule::Request&, const Machine&, const PriceOptions&,
                        const StepsOfRank&, std::int64_t steps, Time limit = forever);

}  // namespace trellis::sim
