// A wire that does to its operations what their fates say, over another wire: for tests.
#pragma once

#include <map>
#include <memory>

#include "ccl/transports/libfabric/wire/wire.h"
#include "tests/faults/fault_injection.h"

namespace trellis::ccl::libfabric {

using Fates = std::map<Sent, Fate>;

// `met`: where to note the fate of each operation when it is taken.
std::unique_ptr<Wire> hostile(std::unique_ptr<Wire>, const FaultInjection&, Fates* met = nullptr);

}  // namespace trellis::ccl::libfabric
