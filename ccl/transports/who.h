// How messages name a rank: one wording for all of them.
#pragma once

#include <string>

#include "ccl/transports/liveness.h"

namespace trellis::ccl {

std::string who(Rank, const std::string& host);  // "rank 3 on host node1"; no host: "rank 3"
std::string who(const Liveness&, Rank);          // without a host where all ranks share one

}  // namespace trellis::ccl
