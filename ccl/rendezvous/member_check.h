// Members check at start that all have come and were told the same. Used by the ranks of a new communicator and by the
// nodes of a job.
#pragma once

#include <string>

#include "ccl/store.h"

namespace trellis::ccl {

struct MemberCheck {
  std::string noun = "rank";
  Rank mine = 0;
  Rank members = 1;
  std::string terms = {};  // must be equal for all: "2 ranks over loopback"
  std::string place = {};  // may differ: the host of this member
};

// Returns when all members have called it with stores that see each other. True: their places differ. Throws PeerLost
// that names the first missing member, and invalid_argument on every member when the terms differ.
bool check_members(Store&, const MemberCheck&, Deadline);

// Called by each member that knows that the members failed to come together; the store counts these calls. Member 0
// then waits, for a second at most, until all members that came have called it: its process may be the one that serves
// the store, and may end next.
void refused_together(Store&, Rank mine);

}  // namespace trellis::ccl
