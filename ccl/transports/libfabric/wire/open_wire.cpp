#include "ccl/transports/libfabric/wire/open_wire.h"

#include <utility>

#include "ccl/transports/libfabric/wire/endpoint.h"
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
                                const WireUse& use) {
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

}  // namespace trellis::ccl::libfabric
