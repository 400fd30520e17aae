#include "net/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "text/number_parsing.h"

namespace trellis::net {
namespace {

const in_addr& v4(const Address& a) { return reinterpret_cast<const sockaddr_in&>(a.storage).sin_addr; }
const in6_addr& v6(const Address& a) { return reinterpret_cast<const sockaddr_in6&>(a.storage).sin6_addr; }

socklen_t length_of(int family) { return family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

Address copy_of(const sockaddr* address, socklen_t length) {
  Address a;
  std::memcpy(&a.storage, address, length);
  a.length = length;
  return a;
}

}  // namespace

std::string Address::host() const {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (family() != AF_INET6) {
    inet_ntop(AF_INET, &v4(*this), text.data(), text.size());
    return text.data();
  }
  inet_ntop(AF_INET6, &v6(*this), text.data(), text.size());
  // An IPv4 client of a socket for both families.
  return text.data() + (IN6_IS_ADDR_V4MAPPED(&v6(*this)) ? std::strlen("::ffff:") : 0);
}

std::string Address::text() const {
  const std::string name = host();
  return name.find(':') == name.npos ? fmt::format("{}:{}", name, port()) : fmt::format("[{}]:{}", name, port());
}

// Both address families keep the port at the same offset.
int Address::port() const { return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port); }

void Address::set_port(int port) {
  reinterpret_cast<sockaddr_in&>(storage).sin_port = htons(static_cast<std::uint16_t>(port));
}

bool Address::is_loopback() const {
  return family() == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&v6(*this)) : ntohl(v4(*this).s_addr) >> 24 == 127;
}

bool Address::is_link_local() const {
  return family() == AF_INET6 ? IN6_IS_ADDR_LINKLOCAL(&v6(*this)) : ntohl(v4(*this).s_addr) >> 16 == 0xA9FE;
}

std::span<const std::byte> Address::number() const {
  return family() == AF_INET6 ? std::as_bytes(std::span(&v6(*this), 1)) : std::as_bytes(std::span(&v4(*this), 1));
}

Address address_of(std::span<const std::byte> number, int port) {
  Address a;
  const bool is_v6 = number.size() == sizeof(in6_addr);
  a.storage.ss_family = is_v6 ? AF_INET6 : AF_INET;
  a.length = length_of(a.family());
  void* const place = is_v6 ? static_cast<void*>(&reinterpret_cast<sockaddr_in6&>(a.storage).sin6_addr)
                            : &reinterpret_cast<sockaddr_in&>(a.storage).sin_addr;
  std::memcpy(place, number.data(), is_v6 ? sizeof(in6_addr) : sizeof(in_addr));
  a.set_port(port);
  return a;
}

std::optional<Address> address_in(std::span<const std::byte> bytes) {
  Address a;
  if (bytes.size() < sizeof(sockaddr_in) || bytes.size() > sizeof a.storage) return {};
  std::memcpy(&a.storage, bytes.data(), bytes.size());
  a.length = length_of(a.family());
  if ((a.family() != AF_INET && a.family() != AF_INET6) || bytes.size() != a.length) return {};
  return a;
}

std::optional<std::pair<std::string, int>> host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return {};
  const std::optional<int> port = text::number<int>(text.substr(colon + 1), 1, 65'535);
  if (!port) return {};
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') != host.ends_with(']')) return {};
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return {};
  return std::pair(std::string(host), *port);
}

std::vector<Address> addresses_of(const std::string& host, int port, int family) {
  addrinfo wanted = {};
  wanted.ai_family = family;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (error != 0)
    throw std::system_error(EHOSTUNREACH, std::generic_category(),
                            fmt::format("host '{}': {}", host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<Address> all;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) all.push_back(copy_of(a->ai_addr, a->ai_addrlen));
  return all;
}

std::vector<InterfaceAddress> own_addresses() {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0)
    throw std::system_error(errno, std::generic_category(), "this machine's network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, freeifaddrs);
  std::vector<InterfaceAddress> all;
  for (const ifaddrs* i = found; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const int family = i->ifa_addr->sa_family;
    if (family == AF_INET || family == AF_INET6) all.push_back({i->ifa_name, copy_of(i->ifa_addr, length_of(family))});
  }
  return all;
}

}  // namespace trellis::net
