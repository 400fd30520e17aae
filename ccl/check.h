// What is wrong with a call by itself, found before anything is sent.
#pragma once

#include "ccl/communicator.h"

namespace trellis::ccl {

// Throws invalid_argument with the value at fault. Tells whether the call is in place, as NCCL defines it.
bool check(const Call&, Rank rank, Rank ranks);

struct Extents {
  std::size_t input = 0, output = 0;  // bytes of this rank's buffers; 0: it has none
};
Extents extents_of(const Call&, Rank rank, Rank ranks);

}  // namespace trellis::ccl
