#include "ccl/transports/libfabric/wire/open_wire.h"

#include "ccl/transports/libfabric/wire/endpoint.h"
#include "ccl/transports/libfabric/wire/hostile_wire.h"

namespace trellis::ccl::libfabric {

namespace {

// Each wire of a hostile fabric has a seed of its own.
std::unique_ptr<Wire> hostile_if_wanted(std::unique_ptr<Wire> wire, const FabricSettings& s, int rail, bool control,
                                        std::uint64_t own_seed) {
  if (s.hostility.empty()) return wire;
  FaultInjection h = hostility_in(s.hostility);
  if (h.only >= 0 && (h.only != rail || (control && h.control == 0))) return wire;
  if (h.control == (control ? 3 : 2)) return wire;
  h.seed = h.seed * (control ? 1 : 1'000'003) * 1'009 + own_seed;
  return hostile(std::move(wire), h);
}

}  // namespace

std::unique_ptr<Wire> open_wire(const FabricSettings& s, std::uint64_t member, int rail, int number,
                                const WireUse& use) {
  return hostile_if_wanted(open_endpoint(chosen(s, rail, use)), s, number, false,
                           member * 1'009 + static_cast<std::uint64_t>(number));
}

std::unique_ptr<Wire> open_control_wire(const FabricSettings& s, int rail) {
  return hostile_if_wanted(open_endpoint(chosen(s, rail)), s, rail, true, static_cast<std::uint64_t>(rail));
}

std::unique_ptr<Wire> open_control_datagrams(const FabricSettings& s, std::span<const std::byte> beside) {
  auto wire = open_datagram_wire(beside);
  return wire ? hostile_if_wanted(std::move(wire), s, 0, true, static_cast<std::uint64_t>(s.rails)) : nullptr;
}

}  // namespace trellis::ccl::libfabric
