// How error messages name a rank and say why it is not alive: the same wording in all of them.
#pragma once

#include <string>

#include "ccl/transports/liveness.h"

namespace trellis::ccl {

std::string who(Rank, const std::string& host);  // "rank 3 on host node1"; no host: "rank 3"
std::string who(const Liveness&, Rank);          // without a host where all ranks share one

// Why a rank is not alive: "died" in an operation, "has closed the communicator", or, if no more is known, "has not
// answered for 3.0 s".
std::string how_it_went(Liveness&, Rank);
std::string unanswered_for(std::chrono::milliseconds);

}  // namespace trellis::ccl
