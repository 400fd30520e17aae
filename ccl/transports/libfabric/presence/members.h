// How the processes of a new communicator get to know each other, by way of the store.
#pragma once

#include "ccl/store.h"
#include "ccl/transports/libfabric/presence/presence.h"

namespace trellis::ccl::libfabric {

// Rank 0 gathers what each tells, and shares it out in notes of 256 members, with the communicator's identity. Throws
// PeerLost for a rank that tells nothing by the deadline.
std::vector<Member> exchange_members(Store&, Rank rank, Rank ranks, const Member& mine, std::uint64_t& identity,
                                     Deadline);

}  // namespace trellis::ccl::libfabric
