// A wire over another one, for tests: its operations meet the fates of fault_injection.h.
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
