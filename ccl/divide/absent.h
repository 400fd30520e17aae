// Finds the rank that keeps a split or shrink from completing.
#pragma once

#include "ccl/divide/meeting.h"
#include "ccl/failure/culprit.h"

namespace trellis::ccl {

// Timeout: throws an error that names the rank at fault. `ended`: the communicator had failed before, so a rank that
// has made another one without this rank does not come back. Returns where none stands still, unless it is long past.
void miss(const RankWait&, const MeetingView&, std::span<const Rank> awaited, bool ended, bool is_long_past);

// One of the awaited ranks has died or left: throws.
[[noreturn]] void lose(Transport&, const MeetingView&, Rank gone, bool ended);

// The error of a split in which another rank gave up on `lost`.
PeerLost given_up(const Transport&, const MeetingView&, Rank lost);

}  // namespace trellis::ccl
