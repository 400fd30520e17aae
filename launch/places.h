// Where the ranks that a host starts run on it.
#pragma once

#include <vector>

#include "launch/host_machine.h"
#include "launch/start.h"

namespace trellis::launch {

// The places of the ranks, which take them in turn: one for each rank, or fewer. `quota`: the CPUs that this process's
// control group may use. If it is less than the cores, other groups use them too, and which ones are busy is not known:
// ranks then run on any, unless Pin::core asks for one each.
std::vector<RankPlace> places_for(const TopoMachine&, int ranks, Pin, double quota);

}  // namespace trellis::launch
