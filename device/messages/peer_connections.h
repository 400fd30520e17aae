// Connections between the job's processes, at whose ends both have proven that they know its secret (net/greeting.h).
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "net/reception.h"

namespace trellis::device {

inline constexpr const char* loopback = "127.0.0.1";

std::string secret_of_job();  // TRELLIS_SECRET; empty: not set, which suffices while all peers are on this host

// The IPv4 address of a host; any of this machine's own is the loopback one, so that they compare equal. Throws
// system_error.
net::Address canonical(const std::string& host, int port);
net::Address canonical(const net::Address&);

// Throws system_error for a peer on another host where there is no secret by which it could prove itself.
void expect_secret_for(const net::Address& canonical, std::string_view secret);

// What the connection is for; a listener takes one kind.
enum class ConnectionPurpose : std::uint32_t { messages = 1, meeting = 2 };

struct ConnectionHello {
  ConnectionPurpose kind = ConnectionPurpose::messages;
  std::int32_t from = 0, to = 0, first_port = 0;  // cores, and the port of the caller's core 0; 0 for a meeting

  net::Bytes terms() const;
  static ConnectionHello in(std::span<const std::byte> terms);
};
inline constexpr net::Greeting call_greeting = {.magic = "trellisd", .label = "trellis call", .terms = 16};

// Calls a listener, greets it, and waits until it has taken the call, so that a later call also arrives later. Tries
// again until the deadline while nobody listens there, and for about a second if the greeting is refused. Throws
// system_error.
net::Descriptor call(const ConnectionHello&, const net::Address& listener, const net::WaitLimit&);

// Transfer all of the bytes. Throw system_error: timed_out, operation_canceled, or that of the connection.
void send_all(const net::Descriptor&, std::span<const std::byte>, const net::WaitLimit&);
void receive_all(const net::Descriptor&, std::span<std::byte>, const net::WaitLimit&);

// The bytes of a value, as it is sent.
template <class T>
std::span<const std::byte> bytes_in(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> bytes_in(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

// Listens in a thread of its own.
class ConnectionListener {
 public:
  struct Call {
    ConnectionHello hello;
    net::Address from;
    net::Descriptor socket;
  };
  struct ListenerOptions {
    ConnectionPurpose kind = ConnectionPurpose::messages;
    int to = 0;
    std::function<void(Call)> arrived = {};   // takes a proven caller's connection; called by the thread
    std::function<void()> meanwhile = [] {};  // regular work; called by the thread after each turn
  };
  ConnectionListener(const net::Address&, ListenerOptions);  // throws system_error
  ~ConnectionListener();

  void listen_at(const net::Address& at) { reception_.listen(net::listen_at(at)); }  // at one more address

 private:
  void work();

  const ListenerOptions answering_;
  const std::string secret_ = secret_of_job();
  net::Reception reception_;
  std::atomic<bool> ending_ = false;
  std::thread thread_;  // last: it uses all members above
};

}  // namespace trellis::device
