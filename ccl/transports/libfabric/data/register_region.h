// Memory as it is registered with a wire: the host's by its address; a device's as the device exports it, where the
// wire's provider can take that.
#pragma once

#include <memory>

#include "ccl/transports/libfabric/wire/wire.h"
#include "device/memory_release_notifier.h"

namespace trellis::ccl::libfabric {

std::unique_ptr<MemoryRegion> register_region(Wire&, const device::MemoryReleaseNotifier::Range&, bool for_peers);

}  // namespace trellis::ccl::libfabric
