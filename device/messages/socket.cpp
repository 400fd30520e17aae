#include "device/messages/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "device/messages/failure.h"
#include "text/number.h"

namespace trellis::device {
namespace {

constexpr auto look_again = std::chrono::milliseconds(50);  // whether to go on

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

sockaddr_in resolved(const Address& a) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(a.host.c_str(), nullptr, &hints, &found);
  if (error != 0) fail_with(std::errc::invalid_argument, "'{}': {}", a.host, gai_strerror(error));
  sockaddr_in out = {};
  std::memcpy(&out, found->ai_addr, sizeof out);
  freeaddrinfo(found);
  out.sin_port = htons(a.port);
  return out;
}

int new_socket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) fail("socket");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

}  // namespace

Address address_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Address a{text.substr(0, colon)};
  const auto port = text::number<std::uint16_t>(std::string_view(text).substr(colon + 1), 1);
  if (colon == std::string::npos || a.host.empty() || !port)
    fail_with(std::errc::invalid_argument, "'{}': expected ADDRESS:PORT, as in 10.0.1.2:46820", text);
  a.port = *port;
  return a;
}

std::string canonical(const std::string& host) {
  sockaddr_in at = resolved({host, 0});
  // Only an own address can be bound to.
  const Socket any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (bind(any.fd(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0) return loopback;
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &at.sin_addr, text, sizeof text);
  return text;
}

std::vector<std::string> own_addresses() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) fail("getifaddrs");
  std::vector<std::string> out;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0 ||
        (one->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    char text[INET_ADDRSTRLEN] = "";
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    out.emplace_back(text);
  }
  freeifaddrs(all);
  return out;
}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}
Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

bool Socket::wait(short what, Deadline deadline, const std::function<bool()>& go_on) const {
  for (;;) {
    pollfd one{fd_, what, 0};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    const int ready = poll(&one, 1, static_cast<int>(std::min(left, look_again).count()) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) fail("poll");
    if (go_on && !go_on()) fail_with(std::errc::operation_canceled, "it was closed meanwhile");
  }
}

Socket Socket::connect(const Address& a, Deadline deadline, const std::function<bool()>& go_on) {
  const sockaddr_in to = resolved(a);
  for (;;) {
    Socket s(new_socket());
    int error = ::connect(s.fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      if (!s.wait(POLLOUT, deadline, go_on)) error = ETIMEDOUT;
      socklen_t size = sizeof error;
      if (error != ETIMEDOUT) getsockopt(s.fd_, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) return s;
    if (std::chrono::steady_clock::now() >= deadline)
      fail_with(std::errc::timed_out, "nobody listens at {}:{}: {}", a.host, a.port, std::strerror(error));
    if (go_on && !go_on()) fail_with(std::errc::operation_canceled, "it was closed meanwhile");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Socket Socket::listen(const Address& a) {
  Socket s(new_socket());
  const int on = 1;
  setsockopt(s.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in at = resolved(a);
  if (bind(s.fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || ::listen(s.fd_, 1024) != 0)
    throw std::system_error(errno, std::generic_category(), fmt::format("{}:{} cannot be listened at", a.host, a.port));
  return s;
}

Socket Socket::accept() {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  const int on = 1;
  if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return Socket(fd);
}

std::uint16_t Socket::port() const {
  sockaddr_in own = {};
  socklen_t size = sizeof own;
  getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &size);
  return ntohs(own.sin_port);
}

std::string Socket::peer() const {
  sockaddr_in other = {};
  socklen_t size = sizeof other;
  char text[INET_ADDRSTRLEN] = "";
  if (getpeername(fd_, reinterpret_cast<sockaddr*>(&other), &size) == 0)
    inet_ntop(AF_INET, &other.sin_addr, text, sizeof text);
  return text;
}

bool Socket::has_gone() const noexcept {
  std::byte next;
  const auto got = recv(fd_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

std::optional<std::size_t> Socket::receive_some(std::span<std::byte> bytes) {
  const auto got = recv(fd_, bytes.data(), bytes.size(), 0);
  if (got > 0) return static_cast<std::size_t>(got);
  if (got == 0) fail_with(std::errc::connection_reset, "a peer has gone");
  if (errno != EAGAIN && errno != EINTR) fail("receiving from a peer");
  return std::nullopt;
}

bool Socket::send_at_once(std::span<const std::byte> bytes) {
  return ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

void Socket::send(std::span<const std::byte> bytes, Deadline deadline, const std::function<bool()>& go_on) {
  while (!bytes.empty()) {
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    else if (sent < 0 && errno != EAGAIN && errno != EINTR)
      fail("sending to a peer");
    else if (!wait(POLLOUT, deadline, go_on))
      fail_with(std::errc::timed_out, "a peer takes nothing");
  }
}

void Socket::receive(std::span<std::byte> bytes, Deadline deadline, const std::function<bool()>& go_on) {
  while (!bytes.empty()) {
    const auto got = recv(fd_, bytes.data(), bytes.size(), 0);
    if (got > 0)
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    else if (got == 0)
      fail_with(std::errc::connection_reset, "a peer has gone");
    else if (errno != EAGAIN && errno != EINTR)
      fail("receiving from a peer");
    else if (!wait(POLLIN, deadline, go_on))
      fail_with(std::errc::timed_out, "nothing comes from a peer");
  }
}

void Socket::stop() {
  if (fd_ >= 0) shutdown(fd_, SHUT_RDWR);
}

}  // namespace trellis::device
