#include "ccl/transports/libfabric/wire/open_wire.h"

#include "ccl/transports/libfabric/wire/endpoint.h"
#include "ccl/transports/libfabric/wire/fault_injection.h"

namespace trellis::ccl::libfabric {

// Each wire of a hostile fabric has a seed of its own.
std::unique_ptr<Wire> open_wire(const FabricSettings& s, std::uint64_t member, int rail, const AmongRanks& among) {
  std::unique_ptr<Wire> wire = open_endpoint(chosen(s, rail, among));
  if (s.hostility.empty()) return wire;
  FaultInjection h = hostility_in(s.hostility);
  if (h.only >= 0 && h.only != rail) return wire;
  h.seed = (h.seed * 1'000'003 + member) * 1'009 + static_cast<std::uint64_t>(rail + 1);
  return hostile(std::move(wire), h);
}

}  // namespace trellis::ccl::libfabric
