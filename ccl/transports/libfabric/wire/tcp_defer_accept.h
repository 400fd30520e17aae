// TCP_DEFER_ACCEPT for the socket on which a provider of sockets listens for peers. The provider accepts whoever
// connects; with this option the kernel hands it a connection only when something has come over it, as a peer sends at
// once.
#pragma once

#include <cstddef>
#include <span>

namespace trellis::ccl::libfabric {

// `address`: of the endpoint. False: no socket of this process listens there.
bool accept_only_who_speaks(std::span<const std::byte> address);

}  // namespace trellis::ccl::libfabric
