// A hash of what a compiled schedule does. An algorithm that ignores the shape makes the same schedule for several
// shapes: choose() recognizes this by the hash, and goes on with the first of them only.
#pragma once

#include <cstdint>
#include <utility>

#include "sim/cluster/price/compiled_schedule.h"

namespace trellis::sim {

using PatternHash = std::pair<std::uint64_t, std::uint64_t>;

PatternHash pattern_hash(const CompiledSchedule&);

}  // namespace trellis::sim
