// Opens the wires that the settings ask for.
#pragma once

#include "ccl/config.h"
#include "ccl/transports/libfabric/wire/provider.h"
#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

// Opens a wire on the interface of a rail of the settings. `member` and `number` tell wires on one interface apart.
std::unique_ptr<Wire> open_wire(const FabricSettings&, std::uint64_t member, int rail, int number,
                                const EndpointNeeds& = {});

// Opens a wire for control, on the interface of a rail.
std::unique_ptr<Wire> open_control_wire(const FabricSettings&, int rail);

// Opens a datagram wire for control, at the IP address `beside` of a control wire. Null: there can be none.
std::unique_ptr<Wire> open_control_datagrams(const FabricSettings&, std::span<const std::byte> beside);

// The limits that hold for every rail, as any piece may go over any of them.
WireLimits common_limits(std::span<const std::unique_ptr<Wire>>);

}  // namespace trellis::ccl::libfabric
