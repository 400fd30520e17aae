// The wire over a libfabric endpoint of reliable datagrams.
#pragma once

#include "ccl/transports/libfabric/wire/provider.h"
#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

std::unique_ptr<Wire> open_endpoint(Info);

}  // namespace trellis::ccl::libfabric
