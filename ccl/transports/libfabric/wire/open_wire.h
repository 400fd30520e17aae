// Opens the wires that the settings ask for.
#pragma once

#include "ccl/fabric.h"
#include "ccl/transports/libfabric/instances/instances.h"
#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

// `member` tells wires apart that have the same rail; -1: the wire for control.
std::unique_ptr<Wire> open_wire(const FabricSettings&, std::uint64_t member, int rail, const AmongRanks& = {});

}  // namespace trellis::ccl::libfabric
