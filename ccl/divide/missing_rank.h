// Finds the rank that keeps a split or shrink from completing.
#pragma once

#include "ccl/divide/split_protocol.h"
#include "ccl/failure/culprit.h"

namespace trellis::ccl {

// Called after the deadline: throws an error that names the rank at fault. Returns if no rank is found at fault, unless
// the deadline is long past. `ended`: the communicator had failed before, so a rank that has made another one without
// this rank does not come back.
void miss(const RankWait&, const SplitView&, std::span<const Rank> awaited, bool ended, bool is_long_past);

// Throws the error for an awaited rank that has died or left.
[[noreturn]] void lose(Transport&, const SplitView&, Rank gone, bool ended);

// The error of a split in which another rank gave up on `lost`.
PeerLost given_up(const Transport&, const SplitView&, Rank lost);

}  // namespace trellis::ccl
