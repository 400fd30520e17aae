// Sockets with deadlines: listen, connect, and send or receive all of some bytes.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl {

// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

struct Endpoint {
  sockaddr_storage address = {};
  socklen_t length = 0;
  std::string text() const;  // 10.0.0.7:29500, [fd00::2]:29500
  int port() const;
  void set_port(int);
};

// Throws system_error (EHOSTUNREACH) with the name when it does not resolve.
std::vector<Endpoint> endpoints_of(const std::string& host, int port);

// The addresses of this machine's interfaces that are up, in the system's order, without loopback and link-local ones.
// `interfaces`: which of them, see matches_interface().
std::vector<Endpoint> own_addresses(const std::string& interfaces);

// Listens at this address ("": all, IPv4 and IPv6) and port (0: any free one). Throws system_error, for instance
// EADDRINUSE.
Descriptor listen_at(const std::string& address, int port);
Endpoint local_endpoint(const Descriptor&);

// Whether these events of poll(2) occur before the deadline.
bool ready_before(int number, short events, Deadline);

// Empty, with errno set, when nobody listens; ETIMEDOUT at the deadline.
Descriptor connect_before(const Endpoint&, Deadline);

// Sends all of it. False at the deadline; system_error (ECONNRESET) when the other side has gone.
bool send_before(const Descriptor&, std::span<const std::byte>, Deadline);
bool receive_before(const Descriptor&, std::span<std::byte>, Deadline);

// Sets TCP_NODELAY and keepalive, so that small messages go at once and a dead host is noticed.
void tune(const Descriptor&);

// For poll(2), rounded up so that no wait ends before the deadline; -1: the deadline is too far to express.
int milliseconds_until(Deadline);

}  // namespace trellis::ccl
