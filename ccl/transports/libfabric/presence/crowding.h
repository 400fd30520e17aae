// Whether ranks have cores of their own to wait on.
#pragma once

namespace trellis::ccl::libfabric {

class Presence;

// This machine has more ranks of the communicator than cores that they may run on: one that polls holds up another.
bool ranks_outnumber_cores(const Presence&);

}  // namespace trellis::ccl::libfabric
