#include "ccl/rendezvous/tcp/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <memory>
#include <system_error>

#include "ccl/rendezvous/interface_pattern.h"

namespace trellis::ccl {
namespace {

std::system_error failure(const std::string& what) { return {errno, std::generic_category(), what}; }

void set_option(int number, int level, int option, int value) {
  setsockopt(number, level, option, &value, sizeof value);  // each is an optimization; none is needed
}

Descriptor listen_on(const Endpoint& at, bool both_families) {
  Descriptor socket(::socket(at.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) throw failure("a socket to listen on");
  set_option(socket.number(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (at.address.ss_family == AF_INET6) set_option(socket.number(), IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1);
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&at.address), at.length) != 0 ||
      listen(socket.number(), 4096) != 0)
    throw failure(fmt::format("listening at {}", at.text()));
  return socket;
}

Endpoint endpoint(const sockaddr* address, socklen_t length) {
  Endpoint e;
  std::memcpy(&e.address, address, length);
  e.length = length;
  return e;
}

Endpoint any_address(int family, int port) {
  Endpoint e;
  e.address.ss_family = static_cast<sa_family_t>(family);
  e.length = family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  e.set_port(port);
  return e;
}

bool for_others(const sockaddr& address) {
  if (address.sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 16) != 0xA9FE;  // 169.254/16
  return address.sa_family == AF_INET6 &&
         !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

std::string Endpoint::text() const {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  if (address.ss_family == AF_INET6) {
    const in6_addr& bits = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    inet_ntop(AF_INET6, &bits, text.data(), text.size());
    // An IPv4 client of a dual-stack socket.
    if (IN6_IS_ADDR_V4MAPPED(&bits)) return fmt::format("{}:{}", text.data() + std::strlen("::ffff:"), port());
    return fmt::format("[{}]:{}", text.data(), port());
  }
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text.data(), text.size());
  return fmt::format("{}:{}", text.data(), port());
}

// Both address families keep the port at the same offset.
int Endpoint::port() const { return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port); }

void Endpoint::set_port(int port) {
  reinterpret_cast<sockaddr_in&>(address).sin_port = htons(static_cast<std::uint16_t>(port));
}

std::vector<Endpoint> endpoints_of(const std::string& host, int port) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (error != 0)
    throw std::system_error(EHOSTUNREACH, std::generic_category(),
                            fmt::format("host '{}': {}", host, gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next)
    endpoints.push_back(endpoint(a->ai_addr, a->ai_addrlen));
  return endpoints;
}

std::vector<Endpoint> own_addresses(const std::string& interfaces) {
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) throw failure("this machine's network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, freeifaddrs);
  std::vector<Endpoint> addresses;
  for (const ifaddrs* i = found; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
    if (!for_others(*i->ifa_addr) || !matches_interface(interfaces, i->ifa_name)) continue;
    addresses.push_back(
        endpoint(i->ifa_addr, i->ifa_addr->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)));
  }
  return addresses;
}

Descriptor listen_at(const std::string& address, int port) {
  if (!address.empty()) return listen_on(endpoints_of(address, port).front(), false);
  try {
    return listen_on(any_address(AF_INET6, port), true);
  } catch (const std::system_error& error) {  // a machine without IPv6
    if (error.code().value() != EAFNOSUPPORT && error.code().value() != EADDRNOTAVAIL) throw;
    return listen_on(any_address(AF_INET, port), false);
  }
}

Endpoint local_endpoint(const Descriptor& socket) {
  Endpoint e;
  e.length = sizeof e.address;
  if (getsockname(socket.number(), reinterpret_cast<sockaddr*>(&e.address), &e.length) != 0)
    throw failure("a socket's own address");
  return e;
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::min(Clock::now(), deadline));
  return left.count() > INT_MAX ? -1 : static_cast<int>(left.count());
}

bool ready_before(int number, short events, Deadline deadline) {
  pollfd polled = {number, events, 0};
  while (true) {
    const int ready = poll(&polled, 1, milliseconds_until(deadline));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw failure("poll");
    if (Clock::now() >= deadline) return false;
  }
}

Descriptor connect_before(const Endpoint& to, Deadline deadline) {
  Descriptor socket(::socket(to.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    if (errno == EAFNOSUPPORT) return {};
    throw failure("a socket to connect with");
  }
  if (connect(socket.number(), reinterpret_cast<const sockaddr*>(&to.address), to.length) != 0) {
    if (errno != EINPROGRESS) return {};
    if (!ready_before(socket.number(), POLLOUT, deadline)) {
      errno = ETIMEDOUT;
      return {};
    }
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
      errno = error;
      return {};
    }
  }
  // On a port without a listener, TCP can connect the caller to itself.
  if (local_endpoint(socket).text() == to.text()) {
    errno = ECONNREFUSED;
    return {};
  }
  tune(socket);
  return socket;
}

bool send_before(const Descriptor& socket, std::span<const std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      if (!ready_before(socket.number(), POLLOUT, deadline)) return false;
    } else if (errno != EINTR) {
      throw failure("sending");
    }
  }
  return true;
}

bool receive_before(const Descriptor& socket, std::span<std::byte> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket.number(), bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      throw std::system_error(ECONNRESET, std::generic_category(), "receiving");
    } else if (errno == EAGAIN) {
      if (!ready_before(socket.number(), POLLIN, deadline)) return false;
    } else if (errno != EINTR) {
      throw failure("receiving");
    }
  }
  return true;
}

void tune(const Descriptor& socket) {
  set_option(socket.number(), IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket.number(), SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket.number(), IPPROTO_TCP, TCP_KEEPIDLE, 10);  // seconds
  set_option(socket.number(), IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket.number(), IPPROTO_TCP, TCP_KEEPCNT, 4);
}

}  // namespace trellis::ccl
