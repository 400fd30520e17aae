// Where the ranks that a host starts run on it.
#pragma once

#include <vector>

#include "launch/host_machine.h"
#include "launch/start_rank.h"

namespace trellis::launch {

// Where ranks run. If there are fewer places than ranks, ranks take them in turn, beginning again after the last.
// `quota`: the CPUs that this process's control group may use. If it is less than the cores, other groups use them too,
// and which ones are busy is not known: ranks then run on any, unless Pin::core asks for one each.
std::vector<RankPlace> places_for(const TopoMachine&, int ranks, Pin, double quota);

}  // namespace trellis::launch
