#include "ccl/transports/libfabric/wire/open_wire.h"

#include <algorithm>
#include <utility>

#include "ccl/transports/libfabric/wire/endpoint_wire.h"
#include "ccl/transports/libfabric/wire/wire_wrapper.h"

namespace trellis::ccl::libfabric {

namespace {

WireWrapper& wrapper() {
  static WireWrapper one;
  return one;
}

std::unique_ptr<Wire> wrapped(std::unique_ptr<Wire> wire, const WireRole& role) {
  return wire && wrapper() ? wrapper()(std::move(wire), role) : std::move(wire);
}

}  // namespace

void wrap_wires(WireWrapper w) { wrapper() = std::move(w); }

std::unique_ptr<Wire> open_wire(const FabricSettings& s, std::uint64_t member, int rail, int number,
                                const EndpointNeeds& use) {
  return wrapped(open_endpoint(chosen(s, rail, use)),
                 {.rail = number, .number = member * 1'009 + static_cast<std::uint64_t>(number)});
}

std::unique_ptr<Wire> open_control_wire(const FabricSettings& s, int rail) {
  return wrapped(open_endpoint(chosen(s, rail)),
                 {.rail = rail, .control = true, .number = static_cast<std::uint64_t>(rail)});
}

std::unique_ptr<Wire> open_control_datagrams(const FabricSettings& s, std::span<const std::byte> beside) {
  return wrapped(open_datagram_wire(beside), {.control = true, .number = static_cast<std::uint64_t>(s.rails)});
}

WireLimits common_limits(std::span<const std::unique_ptr<Wire>> rails) {
  WireLimits all = rails.front()->limits();
  for (const auto& rail : rails) {
    const WireLimits& one = rail->limits();
    all.inject = std::min(all.inject, one.inject);
    all.message = std::min(all.message, one.message);
    all.piece = std::min(all.piece, one.piece);
    all.outstanding = std::min(all.outstanding, one.outstanding);
    all.places = std::min(all.places, one.places);
    all.writes = all.writes && one.writes;
    all.registers_local = all.registers_local || one.registers_local;
    all.device_memory = all.device_memory && one.device_memory;
    all.listens = all.listens && one.listens;
  }
  return all;
}

}  // namespace trellis::ccl::libfabric
