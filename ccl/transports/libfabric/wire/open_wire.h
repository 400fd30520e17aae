// Opens the wires that the settings ask for.
#pragma once

#include "ccl/fabric.h"
#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

std::unique_ptr<Wire> open_wire(const FabricSettings&, std::uint64_t number);

}  // namespace trellis::ccl::libfabric
