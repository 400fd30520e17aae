#include "net/socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>

namespace trellis::net {
namespace {

constexpr auto between_questions = std::chrono::milliseconds(50);  // between calls of goes_on()
constexpr int longest_queue = 4096;                                // of connections to be accepted

std::system_error failure(const std::string& what) { return {errno, std::generic_category(), what}; }

void set_option(const Descriptor& socket, int level, int option, int value) {
  setsockopt(socket.number(), level, option, &value, sizeof value);  // each is an optimization; none is needed
}

// Empty, with errno set, if it can't be bound. A socket of IPv6 for both families takes connections of IPv4, too.
Descriptor bound(const Address& at, int type, bool both_families) {
  Descriptor socket(::socket(at.family(), type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  if (type == SOCK_STREAM) set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (at.family() == AF_INET6) set_option(socket, IPPROTO_IPV6, IPV6_V6ONLY, both_families ? 0 : 1);
  if (bind(socket.number(), at.raw(), at.length) != 0) return {};
  return socket;
}

Descriptor listening(Descriptor socket, const Address& at) {
  if (!socket || listen(socket.number(), longest_queue) != 0) throw failure(fmt::format("listening at {}", at.text()));
  return socket;
}

// Calls transfer() until all bytes are transferred; it returns what send(2) or recv(2) does.
template <class Byte, class Transfer>
bool transfer_before(const Descriptor& socket, std::span<Byte> bytes, short event, const char* what,
                     const WaitLimit& wait, Transfer transfer) {
  while (!bytes.empty()) {
    const ssize_t count = transfer(bytes);
    if (count > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    } else if (count == 0) {
      throw std::system_error(ECONNRESET, std::generic_category(), "a peer has gone");
    } else if (errno == EAGAIN) {
      if (!ready_before(socket.number(), event, wait)) return false;
    } else if (errno != EINTR) {
      throw failure(what);
    }
  }
  return true;
}

}  // namespace

void WaitLimit::expect_to_go_on() const {
  if (goes_on && !goes_on())
    throw std::system_error(std::make_error_code(std::errc::operation_canceled), "it was closed meanwhile");
}

int milliseconds_until(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::min(Clock::now(), deadline));
  return left.count() > INT_MAX ? -1 : static_cast<int>(left.count());
}

bool ready_before(int number, short events, const WaitLimit& wait) {
  pollfd polled = {number, events, 0};
  while (true) {
    const Deadline turn = wait.goes_on ? std::min(wait.until, Clock::now() + between_questions) : wait.until;
    const int ready = poll(&polled, 1, milliseconds_until(turn));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw failure("poll");
    if (Clock::now() >= wait.until) return false;
    wait.expect_to_go_on();
  }
}

Descriptor bound_to(const Address& at, int type) { return bound(at, type, false); }

Descriptor listen_at(const Address& at) { return listening(bound_to(at, SOCK_STREAM), at); }

Descriptor listen_at(const std::string& host, int port) {
  if (!host.empty()) return listen_at(addresses_of(host, port).front());
  const std::array<std::byte, sizeof(in6_addr)> any = {};
  try {
    const Address at = address_of(any, port);
    return listening(bound(at, SOCK_STREAM, true), at);
  } catch (const std::system_error& error) {  // a machine without IPv6
    if (error.code().value() != EAFNOSUPPORT && error.code().value() != EADDRNOTAVAIL) throw;
    return listen_at(address_of(std::span(any).first<sizeof(in_addr)>(), port));
  }
}

Address local_address(const Descriptor& socket) {
  Address a;
  a.length = sizeof a.storage;
  if (getsockname(socket.number(), a.raw(), &a.length) != 0) throw failure("a socket's own address");
  return a;
}

Descriptor begin_to_connect(const Address& to) {
  Descriptor socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  const bool failed = connect(socket.number(), to.raw(), to.length) != 0 && errno != EINPROGRESS;
  if (!failed) errno = 0;
  return socket;
}

int outcome_of_connecting(const Descriptor& socket) {
  int error = 0;
  socklen_t length = sizeof error;
  getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

Descriptor connect_before(const Address& to, const WaitLimit& wait) {
  Descriptor socket = begin_to_connect(to);
  if (!socket) {
    if (errno == EAFNOSUPPORT) return {};
    throw failure("a socket to connect with");
  }
  int error = errno;
  if (error == 0) error = ready_before(socket.number(), POLLOUT, wait) ? outcome_of_connecting(socket) : ETIMEDOUT;
  // On a port without a listener, TCP can connect the caller to itself.
  if (error == 0 && local_address(socket) == to) error = ECONNREFUSED;
  if (error == 0) {
    tune(socket);
    return socket;
  }
  errno = error;
  return {};
}

void tune(const Descriptor& socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 10);  // seconds
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 4);
}

bool send_before(const Descriptor& socket, std::span<const std::byte> bytes, const WaitLimit& wait) {
  return transfer_before(socket, bytes, POLLOUT, "sending to a peer", wait, [&](std::span<const std::byte> rest) {
    return send(socket.number(), rest.data(), rest.size(), MSG_NOSIGNAL);
  });
}

bool receive_before(const Descriptor& socket, std::span<std::byte> bytes, const WaitLimit& wait) {
  return transfer_before(socket, bytes, POLLIN, "receiving from a peer", wait,
                         [&](std::span<std::byte> rest) { return recv(socket.number(), rest.data(), rest.size(), 0); });
}

bool has_gone(const Descriptor& socket) {
  std::byte next;
  const ssize_t got = recv(socket.number(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace trellis::net
