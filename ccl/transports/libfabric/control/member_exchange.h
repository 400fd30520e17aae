// How the processes of a new communicator get to know each other, by way of the store.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ccl/errors.h"
#include "ccl/store.h"
#include "ccl/transports/libfabric/control/message_authenticator.h"
#include "ccl/transports/libfabric/presence/roster.h"

namespace trellis::ccl::libfabric {

// Rank 0 gathers what each process reports, and distributes it in notes of 256 members, with the communicator's
// CommunicatorNonce. Throws, on every rank that has come, PeerLost for a rank that reports nothing by the deadline, and
// invalid_argument if terms differ.
std::vector<Member> exchange_members(Store&, Rank rank, Rank ranks, const Member& mine, CommunicatorNonce&, Deadline);

}  // namespace trellis::ccl::libfabric
