// Root cause of a failed wait: finds the rank at fault from the activities that all ranks publish.
#pragma once

#include <chrono>
#include <exception>

#include "ccl/failure/culprit.h"

namespace trellis::ccl {

class FlightRecorder;

// Throws PeerLost when a rank is known to be gone and Aborted when a rank aborted. Throws Mismatch when the rank that
// is waited for is in another operation, once `waited` is long enough to be sure.
void check_health(Transport&, const FlightRecorder& past, const RankActivity& mine, std::chrono::nanoseconds waited);

// If the caller was interrupted (ccl/interruption.h), tells the other ranks and throws Aborted.
void heed_interruption(Transport&, const RankActivity& mine);

// Throws the error for a message that was damaged on its way.
[[noreturn]] void explain(const Transport&, const RankActivity& mine, const MessageDamaged&);

// Throws the error for a message that its sender has withdrawn.
[[noreturn]] void explain(Transport&, const RankActivity& mine, const MessageWithdrawn&);

// Called when this rank has waited for longer than the timeout, or when a rank has not come for that long: throws an
// error that names the rank at the root of the waiting. Returns if it is too early to blame one: if neither this rank
// has waited nor the rank at fault has stood still for longer than the timeout. If no rank is found at fault, it also
// returns while data still move and, unless ranks wait for each other in a circle, until this rank has waited for one
// and a half timeouts.
void give_up(Transport&, const FlightRecorder& past, const FamilyMember&, HeartbeatMonitor&, const RankActivity& mine,
             std::chrono::milliseconds timeout, std::chrono::nanoseconds waited);

// The error for an operation that cannot start, because a rank was lost or has ended the communicator before.
PeerLost lost_before(const Transport&);
std::exception_ptr ended_by(const Transport&);  // what the rank that ended it tells of its failure, or an Aborted

}  // namespace trellis::ccl
