// Whether ranks have cores of their own to wait on.
#pragma once

#include <vector>

namespace trellis::ccl::libfabric {

class Presence;

// This machine has more ranks of the communicator than cores that they may run on and keep busy: one that polls holds
// up another.
bool ranks_outnumber_cores(const Presence&);

// The same of ranks that may each run on these hardware threads, none where it is not told: then no core is known to be
// shared. `quota`: CPUs that they are granted together.
bool outnumber_cores(const std::vector<std::vector<int>>& of_ranks, double quota);

}  // namespace trellis::ccl::libfabric
