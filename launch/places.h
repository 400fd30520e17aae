// Where the ranks that a host starts run on it.
#pragma once

#include <vector>

#include "launch/host_machine.h"
#include "launch/start.h"

namespace trellis::launch {

// The places of the ranks, which get them in turn: one for each rank, or fewer. `quota`: CPUs that the control group of
// this process may use. One of fewer than the cores shares them with other groups, and which of them are at work
// elsewhere is not known: ranks then run on any, unless Pin::core asks for one each.
std::vector<RankPlace> places_for(const TopoMachine&, int ranks, Pin, double quota);

}  // namespace trellis::launch
