// How long a group would take on the machine that TRELLIS_SIMULATE names, for ncclGroupSimulateEnd.
#pragma once

#include <vector>

#include "ccl/api/nccl/nccl_comm.h"

namespace trellis::nccl {

// A call of a group, as it is priced.
struct GroupCall {
  trellis_comm comm;
  NcclPlace place;
  trellis_collective collective;  // TRELLIS_SEND_RECV: one end of a message
  std::size_t bytes;              // of the larger buffer, or of the message
  int other;                      // the root, or the peer
  bool sends;                     // the message, rather than receive it
};

// Microseconds; NCCL_UNDEF_FLOAT where TRELLIS_SIMULATE is not set. The ranks of each communicator are the machine's
// first ones. All ranks make the same collectives; of messages, those are known whose end is among the calls. A rank
// alone that sends to the rank d places further, and receives as much from the one d places before, is taken to do what
// all ranks do. Throws Refused, naming the variable, where the machine is unknown or has fewer ranks.
float estimate(const std::vector<GroupCall>&);

}  // namespace trellis::nccl
