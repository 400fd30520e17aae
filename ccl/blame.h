// Who is at fault when nothing comes: found by looking at what the others show of themselves.
#pragma once

#include <chrono>

#include "ccl/transport.h"

namespace trellis::ccl {

// Throws PeerLost when a rank is known to be gone, Aborted when somebody aborted, and, once it has been waited for
// `waited` long enough to be sure, Mismatch when the rank that is waited for is in another operation than this one.
void check_well(Transport&, const Activity& mine, std::chrono::nanoseconds waited);

// Throws Mismatch when ranks have been in different operations, and each was through with its own before the other's
// could be seen: what was begun is over here, and nothing more will come.
void check_over(const Transport&, const Activity& mine);

// What a message that does not fit tells about the two calls.
[[noreturn]] void explain(const Transport&, const Activity& mine, const Misfit&);

// A message that its sender has taken back.
[[noreturn]] void explain(Transport&, const Activity& mine, const Withdrawn&);

// The time is over: throws, naming the rank that all this waiting comes down to.
[[noreturn]] void give_up(Transport&, Activity& mine, std::chrono::milliseconds timeout);

// A rank that has not come to where the others meet, as a PeerLost that says what it is in instead.
PeerLost missed(const Transport&, const PeerLost&, std::string_view meeting);

std::string text_of(const Activity&);  // "operation 12, all_reduce of 1024 f32, sum"

}  // namespace trellis::ccl
