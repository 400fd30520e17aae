#include "ccl/transports/libfabric/wire/address_list.h"

#include <netinet/in.h>

#include <cstring>

namespace trellis::ccl::libfabric {

std::vector<std::byte> address_list(std::span<const std::unique_ptr<Wire>> wires) {
  std::vector<std::byte> list;
  for (const auto& wire : wires) {
    const auto one = wire ? wire->address() : std::span<const std::byte>();
    list.push_back(static_cast<std::byte>(one.size()));
    list.insert(list.end(), one.begin(), one.end());
  }
  return list;
}

std::vector<std::span<const std::byte>> addresses_in(std::span<const std::byte> list) {
  std::vector<std::span<const std::byte>> all;
  while (!list.empty() && static_cast<std::size_t>(list.front()) < list.size()) {
    const auto bytes = static_cast<std::size_t>(list.front());
    all.push_back(list.subspan(1, bytes));
    list = list.subspan(1 + bytes);
  }
  return all;
}

std::optional<ccl::Endpoint> ip_address_in(std::span<const std::byte> address) {
  sockaddr_storage s = {};
  if (address.size() < sizeof(sockaddr_in) || address.size() > sizeof s) return {};
  std::memcpy(&s, address.data(), address.size());
  const socklen_t bytes = s.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if ((s.ss_family != AF_INET && s.ss_family != AF_INET6) || address.size() != bytes) return {};
  return ccl::Endpoint{.address = s, .length = bytes};
}

}  // namespace trellis::ccl::libfabric
