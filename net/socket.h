// Sockets with deadlines: listen, connect, and send or receive all of some bytes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "net/address.h"
#include "net/descriptor.h"

namespace trellis::net {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// How long a call waits: until the deadline, and while `goes_on` returns true, if it is given. It is called every 50
// ms; when it returns false, the call throws system_error (operation_canceled).
struct WaitLimit {
  WaitLimit(Deadline deadline, std::function<bool()> cancels_not = {})
      : until(deadline), goes_on(std::move(cancels_not)) {}
  void expect_to_go_on() const;
  Deadline until;
  std::function<bool()> goes_on;
};

// For poll(2), rounded up so that no wait ends before the deadline; -1: the deadline is too far to express.
int milliseconds_until(Deadline);
// Whether these events of poll(2) occur before the deadline.
bool ready_before(int number, short events, const WaitLimit&);

// A socket of a type (SOCK_STREAM, SOCK_DGRAM) that is bound to the address. Empty, with errno set, if it can't be.
Descriptor bound_to(const Address&, int type);
// Throw system_error, for instance EADDRINUSE. Port 0 is any free one; the empty host is all addresses, IPv4 and IPv6.
Descriptor listen_at(const Address&);
Descriptor listen_at(const std::string& host, int port);
Address local_address(const Descriptor&);

// Begins to connect, and does not wait. errno is 0, or the error if it failed at once.
Descriptor begin_to_connect(const Address&);
// The outcome of that, to be asked for once the socket can be written to: an errno, or 0 if it is connected.
int outcome_of_connecting(const Descriptor&);
// Empty, with errno set, when nobody listens; ETIMEDOUT at the deadline.
Descriptor connect_before(const Address&, const WaitLimit&);
// Sets TCP_NODELAY and keepalive, so that small messages go at once and a dead host is noticed.
void tune(const Descriptor&);

// Transfer all of the bytes. False at the deadline; system_error when the other side has gone (ECONNRESET).
bool send_before(const Descriptor&, std::span<const std::byte>, const WaitLimit&);
bool receive_before(const Descriptor&, std::span<std::byte>, const WaitLimit&);
// Whether the other side has closed the connection, and all that it sent was received.
bool has_gone(const Descriptor&);

}  // namespace trellis::net
