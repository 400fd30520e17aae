// The wires that there are: over a libfabric endpoint of reliable datagrams, and over UDP.
#pragma once

#include "ccl/transports/libfabric/wire/provider.h"
#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

std::unique_ptr<Wire> open_endpoint(Info);

// A wire over UDP, for control alone: it reaches a peer without a connection. Whoever hears nothing over a connection
// asks over this wire, which has no back-off, and learns at once if nobody is there any more. It is bound to the IP
// address `beside`, which is an endpoint's. Null: that is no IP address, or no socket can be opened. A message may be
// lost, although its event says done; one to a port where nobody listens fails with ECONNREFUSED.
std::unique_ptr<Wire> open_datagram_wire(std::span<const std::byte> beside);

}  // namespace trellis::ccl::libfabric
