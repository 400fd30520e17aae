// A lower bound on a schedule's time from a prefix of some ranks' programs. It starts at one rank and goes back to its
// senders, and to theirs. One rank of each class is enough, so the length of the chain through a ring or tree of any
// size shows after few steps.
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
