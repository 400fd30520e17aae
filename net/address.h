// An address of TCP or UDP: a host by its IPv4 or IPv6 number, and a port.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trellis::net {

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  int family() const { return storage.ss_family; }
  std::string host() const;  // 10.0.0.7, fd00::2
  std::string text() const;  // 10.0.0.7:29500, [fd00::2]:29500
  int port() const;
  void set_port(int);
  bool is_loopback() const;
  bool is_link_local() const;
  std::span<const std::byte> number() const;  // the host's, in network order: 4 or 16 bytes
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
  bool operator==(const Address& other) const { return text() == other.text(); }
};

// The address with this host number, 4 or 16 bytes in network order.
Address address_of(std::span<const std::byte> number, int port);
// The address in a sockaddr_in or sockaddr_in6; none if the bytes are of another family or size.
std::optional<Address> address_in(std::span<const std::byte> sockaddr_bytes);

// The host and the port of HOST:PORT or [HOST]:PORT; none if it is something else.
std::optional<std::pair<std::string, int>> host_and_port(std::string_view text);

// All addresses of a host's name or number. Throws system_error (EHOSTUNREACH) with the name if it has none.
std::vector<Address> addresses_of(const std::string& host, int port, int family = AF_UNSPEC);

// An address of one of this machine's network interfaces. own_addresses() returns those of all interfaces that are up,
// except loopback, in the system's order.
struct InterfaceAddress {
  std::string interface;
  Address address;
};
std::vector<InterfaceAddress> own_addresses();

}  // namespace trellis::net
