// A wire that does what a fabric may do at its worst, over another wire: for tests. Everything follows from the seed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

struct FaultInjection {
  std::uint64_t seed = 1;
  int reorder = 0;      // per cent of events that are held back while later ones pass
  int hold = 8;         // polls, at most, for which one is held
  int refuse = 0;       // per cent of operations for which there is no room at first
  int credits = 0;      // most operations under way that send; 0: as many as the wire takes
  int outstanding = 0;  // most pieces under way: it takes more for a mistake of its user; 0: as many as the wire says
  int places = 0;       // most runs of pieces that may be on their way to this process; 0: as many as usual
  int fail = 0;         // per cent of messages and pieces that end in an error and are not sent
  int only = -1;        // the rail that does all this; -1: every one, and control too
  int control = 0;      // 1: that rail's interface does it, so the control over it, too
  int former = 0;  // per cent of messages before which one comes as a process that was at this address would send it
  int stick = 0;   // operations that send, after which no further one is carried out or ends; 0: never
  int early = 0;   // 1: operations that are not carried out because of `stick` end well
  int stall = 0;   // milliseconds, at most, for which now and then nothing happens
};

// "seed=1,reorder=30,only=1": throws invalid_argument that names the part at fault.
FaultInjection hostility_in(const std::string&);

std::unique_ptr<Wire> hostile(std::unique_ptr<Wire>, const FaultInjection&);

}  // namespace trellis::ccl::libfabric
