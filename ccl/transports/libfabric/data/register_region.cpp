#include "ccl/transports/libfabric/data/register_region.h"

#include <system_error>

#include "device/device.h"
#include "device/topology.h"

namespace trellis::ccl::libfabric {

// A provider with FI_HMEM that was built without Neuron's part refuses the DMA-BUF. Then the mapped address is
// registered instead.
std::unique_ptr<MemoryRegion> register_region(Wire& wire, const device::MemoryReleaseNotifier::Range& r,
                                              bool for_peers) {
  if (r.exporter != nullptr && wire.limits().device_memory) try {
      const device::Exported e = r.exporter->export_memory(r.begin, r.bytes);
      return wire.region({.data = r.begin,
                          .bytes = r.bytes,
                          .of = MemoryDescription::Of::neuron,
                          .device = r.exporter->topology().chip_of_core(),
                          .dmabuf = e.fd(),
                          .dmabuf_offset = e.offset()},
                         for_peers);
    } catch (const std::system_error&) {
    }
  return wire.region({.data = r.begin, .bytes = r.bytes}, for_peers);
}

}  // namespace trellis::ccl::libfabric
