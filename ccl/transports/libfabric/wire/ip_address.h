// An endpoint's address, where it is one of IP.
#pragma once

#include <netinet/in.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "ccl/rendezvous/tcp/socket.h"

namespace trellis::ccl::libfabric {

// None: it is of a provider's own kind.
inline std::optional<ccl::Endpoint> ip_address_in(std::span<const std::byte> address) {
  sockaddr_storage s = {};
  if (address.size() < sizeof(sockaddr_in) || address.size() > sizeof s) return {};
  std::memcpy(&s, address.data(), address.size());
  const socklen_t bytes = s.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if ((s.ss_family != AF_INET && s.ss_family != AF_INET6) || address.size() != bytes) return {};
  return ccl::Endpoint{.address = s, .length = bytes};
}

}  // namespace trellis::ccl::libfabric
