// Whether ranks have cores of their own to wait on.
#pragma once

#include <vector>

namespace trellis::ccl::libfabric {

class Roster;

// True if this machine has more ranks of the communicator than cores that they may run on and keep busy, so that a rank
// that polls holds up another.
bool ranks_outnumber_cores(const Roster&);

// The same for ranks that may each run on these hardware threads. If a list is empty, that rank's threads are not
// known, and only `quota` limits the cores: the CPUs that the ranks are granted together.
bool outnumber_cores(const std::vector<std::vector<int>>& of_ranks, double quota);

}  // namespace trellis::ccl::libfabric
