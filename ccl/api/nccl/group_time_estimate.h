// How long a group would take on the machine that TRELLIS_SIMULATE names, for ncclGroupSimulateEnd.
#pragma once

#include <vector>

#include "ccl/api/nccl/nccl_comm.h"

namespace trellis::nccl {

// A call of a group, reduced to what its time depends on.
struct EstimatedCall {
  trellis_comm comm;
  RankAndSize place;
  trellis_collective collective;  // TRELLIS_SEND_RECV: one end of a message
  std::size_t bytes;              // of the larger buffer, or of the message
  int other;                      // the root, or the peer
  bool sends;                     // whether this rank sends the message, or receives it
};

// Returns microseconds; NCCL_UNDEF_FLOAT if TRELLIS_SIMULATE is not set. The ranks of each communicator are placed on
// the machine's first ranks. All ranks are assumed to make the same collectives. A message counts if its send, its
// receive or both are among the calls. If a communicator's calls are all of one rank, which sends to the rank d places
// further and receives as much from the rank d places before, all its ranks are assumed to do so. Throws NcclError,
// which names the variable, if the machine is unknown or has fewer ranks.
float estimate(const std::vector<EstimatedCall>&);

}  // namespace trellis::nccl
