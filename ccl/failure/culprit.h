// Finds the rank that is the root cause of a wait, even if the waiting leads through other communicators of the family.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ccl/failure/heartbeat_monitor.h"
#include "ccl/failure/sibling_waits.h"

namespace trellis::ccl {

struct Culprit {
  enum class How : std::uint8_t {
    none,     // every rank that is waited for, and every one that these wait for, moves
    stopped,  // its process is stopped
    still,    // it is in an operation, and has shown no heartbeat for long enough
    idle,     // it is in no operation of the family that can be seen
  };
  How how = How::none;
  Rank rank = -1;                     // in this communicator; -1: it is in another one of the family
  Rank place = -1;                    // in the family
  std::vector<Rank> waited_for = {};  // the ranks of this communicator to which the wait leads, if none is at fault
};

// This rank's wait in a communicator.
struct RankWait {
  const Transport& transport;
  const FamilyMember& family;
  const HeartbeatMonitor& watch;
};

// `first`: the rank that is waited for. `needed`: all ranks that may be at fault. They are examined as well as the
// chain from `first`, which may miss them: a rank that waits for several shows only one. A stopped process is blamed
// before a rank that stands still, and that before one that is late. A rank that has changed lately is not at fault.
Culprit culprit_of(const RankWait&, Rank first, std::span<const Rank> needed);

// "rank 2", or "rank 2 of the first communicator (not in this one)".
std::string name_of(const RankWait&, const Culprit&);

}  // namespace trellis::ccl
