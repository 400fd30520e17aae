// The wires that there are: over a libfabric endpoint of reliable datagrams, and over UDP.
#pragma once

#include "ccl/transports/libfabric/wire/provider.h"
#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

std::unique_ptr<Wire> open_endpoint(Info);

// Over UDP, for control alone: a way to a peer that no connection has to carry. Whoever hears nothing over a connection
// asks over this one, which has no back-off, and learns at once that nobody is there any more. At the IP address of an
// endpoint, as the provider tells it. Null: that is no IP address, or no socket is to be had. A message may be lost,
// although its end is told as done; one to a peer where nobody listens ends in ECONNREFUSED.
std::unique_ptr<Wire> open_datagram_wire(std::span<const std::byte> beside);

}  // namespace trellis::ccl::libfabric
