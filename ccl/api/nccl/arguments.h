// What is wrong with a function's arguments by themselves, in the words of the function that the program called. The
// layers below would find it too, and speak of theirs.
#pragma once

#include "ccl/api/nccl/clique.h"

namespace trellis::nccl {

// An operation, with the names that its header gives to what other functions call otherwise.
struct Function {
  const char* name;
  const char* in = "sendbuff";
  const char* out = "recvbuff";
  const char* count = "count";
};

// All throw Refused. Collectives; then sends and receives, of which the buffer is the one that they have.
void check(const Function&, const trellis_call&, const Clique&);
void check(const Function&, const char* buffer, const void* data, std::size_t count, trellis_type, int peer,
           const Clique&);

void check_peer(const char* function, int peer, const Clique&);
void check_rank(const char* name, int rank, const char* ranks_name, int ranks);
void check_region(const void* buff, std::size_t size);
void check_excluded(const int* ranks, int count, const Clique&);

}  // namespace trellis::nccl
