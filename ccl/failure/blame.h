// Root cause of a failed wait: finds the rank at fault from the activities that all ranks publish.
#pragma once

#include <chrono>

#include "ccl/failure/watchdog.h"

namespace trellis::ccl {

// Throws PeerLost when a rank is known to be gone and Aborted when a rank aborted. Throws Mismatch when the rank that
// is waited for is in another operation, once `waited` is long enough to be sure.
void check_health(Transport&, const Activity& mine, std::chrono::nanoseconds waited);

// Where the caller has been interrupted (ccl/interruption.h): tells the other ranks, and throws Aborted.
void heed_interruption(Transport&, const Activity& mine);

// Throws Mismatch when ranks were in different operations, and each finished its own before the other's could be seen.
// Called when this rank's operations are over and no more will follow.
void check_over(Transport&, const Activity& mine);

// Reports the difference between the two calls that a mismatched message reveals.
[[noreturn]] void explain(Transport&, const Activity& mine, const Misfit&);

// Reports a message that its sender has withdrawn.
[[noreturn]] void explain(Transport&, const Activity& mine, const Withdrawn&);

// Timeout: throws an error that names the rank at the root of the waiting.
[[noreturn]] void give_up(Transport&, const Activity& mine, std::chrono::milliseconds timeout, const Watchdog&);

// The error for an operation that cannot start, because a rank was lost or aborted before.
PeerLost lost_before(const Transport&);
Aborted aborted_by(const Transport&);

std::string text_of(const Activity&);  // "operation 12, all_reduce of 1024 f32, sum", "a split after operation 12"

}  // namespace trellis::ccl
