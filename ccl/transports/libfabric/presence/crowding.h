// Whether ranks have cores of their own to wait on.
#pragma once

#include <vector>

namespace trellis::ccl::libfabric {

class Roster;

// True if this machine has more ranks of the communicator than cores that they may run on and keep busy, so that a rank
// that polls holds up another.
bool ranks_outnumber_cores(const Roster&);

// The same for ranks that may each run on these hardware threads; an empty list is not known, and then no core counts
// as shared. `quota`: the CPUs that they are granted together.
bool outnumber_cores(const std::vector<std::vector<int>>& of_ranks, double quota);

}  // namespace trellis::ccl::libfabric
