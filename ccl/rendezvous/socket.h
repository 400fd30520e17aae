// Sockets with deadlines: who listens, who connects, and bytes that must all come or go.
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

// Throws system_error (EHOSTUNREACH), with the name, when it stands for nothing.
std::vector<Endpoint> endpoints_of(const std::string& host, int port);

// Of this machine's interfaces that are up, in the system's order; loopback and link-local ones are left out.
std::vector<Endpoint> own_addresses();

// At this address ("": every one, IPv4 and IPv6) and port (0: a free one). Throws system_error, EADDRINUSE among them.
Descriptor listen_at(const std::string& address, int port);
Endpoint local_endpoint(const Descriptor&);

// Whether it is ready for these events of poll(2) before the deadline.
bool ready_before(int number, short events, Deadline);

// Empty, with errno set, when nobody is there; ETIMEDOUT at the deadline.
Descriptor connect_before(const Endpoint&, Deadline);

// All of it. False at the deadline; system_error (ECONNRESET) when the other side is gone.
bool send_before(const Descriptor&, std::span<const std::byte>, Deadline);
bool receive_before(const Descriptor&, std::span<std::byte>, Deadline);

// Small messages at once, and a host that died is noticed.
void tune(const Descriptor&);

// For poll(2), rounded up so that nobody wakes before the deadline; -1: a deadline beyond reckoning.
int milliseconds_until(Deadline);

}  // namespace trellis::ccl
