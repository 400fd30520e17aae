// Sends and receives of a group as one program: those to or from one peer in order, all peers at once.
#pragma once

#include "ccl/communicator.h"
#include "ccl/compiled.h"

namespace trellis::ccl {

// Its places are addresses, in bytes, whatever the buffer. Throws invalid_argument when a rank's sends to itself do not
// meet as many receives of the same size.
Compiled compile_points(std::span<const Call>, Rank rank, int lane);

}  // namespace trellis::ccl
