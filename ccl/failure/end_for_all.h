// Why a rank ends a communicator, and what it tells the others of that.
#pragma once

#include <exception>
#include <optional>

#include "ccl/transports/membership_notice.h"
#include "ccl/transports/transport.h"

namespace trellis::ccl {

// True if every rank that makes the same call meets this error by itself: a caller's mistake, or what a device can't
// do.
bool is_found_by_all(const std::exception_ptr&);

std::optional<Rank> lost_rank(const std::exception_ptr&);  // of a PeerLost that names a rank of the communicator

// Ends the communicator on all ranks, with the reason on the board. `elsewhere`: the failure started on another one.
void end_for_all(Transport&, const std::exception_ptr&, bool elsewhere, MembershipNotice&);

// Tells the others that this rank makes no more calls.
void finalize_for_all(Transport&, MembershipNotice&);
bool has_finalized(const Transport&, Rank);

}  // namespace trellis::ccl
