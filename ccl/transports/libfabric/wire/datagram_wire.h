// A wire over UDP, for control alone: a way to a peer that no connection has to carry. Whoever hears nothing over a
// connection asks over this one, which has no back-off, and learns at once that nobody is there any more.
#pragma once

#include <memory>

#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

// At the IP address of an endpoint, as the provider tells it. Null: that is no IP address, or no socket is to be had.
// A message may be lost, although its end is told as done; one to a peer where nobody listens ends in ECONNREFUSED.
std::unique_ptr<Wire> open_datagram_wire(std::span<const std::byte> beside);

}  // namespace trellis::ccl::libfabric
