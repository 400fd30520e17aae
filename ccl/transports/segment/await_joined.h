// Last step of joining a segment: waits until all ranks have joined, or until one of them gives up for all.
#pragma once

#include "ccl/transports/open.h"
#include "ccl/transports/segment/shared_transport.h"

namespace trellis::ccl {

// Marks this rank as joined in the segment and waits. It returns on every rank or on none. An error on one rank, at its
// deadline, ends it on all that wait and on those that come later: with JoinAborted, or with PeerLost if
// JoinOptions::waiting is not set.
void join_all(const Segment&, const JoinOptions&, PeerMemoryAccess&);

}  // namespace trellis::ccl
