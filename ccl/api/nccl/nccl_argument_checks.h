// Checks a function's arguments on their own and names them as the called function's header does. The layers below
// would find the same errors, but use their own names.
#pragma once

#include "ccl/api/nccl/nccl_comm.h"

namespace trellis::nccl {

// The names of an operation and of its parameters in its header. The defaults are the most common ones.
struct ParameterNames {
  const char* name;
  const char* in = "sendbuff";
  const char* out = "recvbuff";
  const char* count = "count";
};

// All throw NcclError. The first is for collectives, the second for sends and receives, which have one buffer.
void check(const ParameterNames&, const trellis_call&, const NcclComm&);
void check(const ParameterNames&, const char* buffer, const void* data, std::size_t count, trellis_type, int peer,
           const NcclComm&);

void check_peer(const char* function, int peer, const NcclComm&);
void check_rank(const char* name, int rank, const char* ranks_name, int ranks);
void check_region(const void* buff, std::size_t size);
void check_excluded(const int* ranks, int count, const NcclComm&);

}  // namespace trellis::nccl
