// Members of a group see that all of them have come, and that they were told the same: ranks of a new communicator, and
// nodes of a job.
#pragma once

#include <string>

#include "ccl/store.h"

namespace trellis::ccl {

struct Roll {
  std::string noun = "rank";
  Rank mine = 0;
  Rank members = 1;
  std::string terms = {};  // what all must have been told: "2 ranks over loopback"
};

// Returns when all members have called it with stores that see each other. Throws PeerLost naming the first that did
// not come, and invalid_argument on every one when some were told other terms.
void call_the_roll(Store&, const Roll&, Deadline);

}  // namespace trellis::ccl
