// TCP, as messages between devices need it: whole messages, with deadlines. What fails is a system_error: timed_out,
// operation_canceled, connection_reset, invalid_argument, or that of the system call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trellis::device {

using Deadline = std::chrono::steady_clock::time_point;

struct Address {
  std::string host;
  std::uint16_t port = 0;
};
Address address_of(const std::string& text);  // "10.0.0.1:46820"

inline constexpr const char* loopback = "127.0.0.1";
// The host's address in digits; any of this machine's own is loopback's, so that they are the same.
std::string canonical(const std::string& host);
std::vector<std::string> own_addresses();  // of the interfaces that are up, without loopback's

// A value as it is sent.
template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  ~Socket();
  Socket(Socket&&) noexcept;
  Socket& operator=(Socket&&) noexcept;

  // Tries again until the deadline while nobody listens there. `go_on` is asked now and then.
  static Socket connect(const Address&, Deadline, const std::function<bool()>& go_on);
  static Socket listen(const Address&);
  Socket accept();                 // who waits; one without a descriptor, with errno set: nobody
  std::uint16_t port() const;      // its own
  std::string peer() const;        // its address
  bool has_gone() const noexcept;  // the other end has ended it, and everything that it sent was received

  void send(std::span<const std::byte>, Deadline, const std::function<bool()>& go_on);
  void receive(std::span<std::byte>, Deadline, const std::function<bool()>& go_on);
  // Without waiting. None: nothing is there yet.
  std::optional<std::size_t> receive_some(std::span<std::byte>);
  bool send_at_once(std::span<const std::byte>);  // false: it does not take all of it
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void stop();  // ends what others do with it

 private:
  bool wait(short what, Deadline, const std::function<bool()>& go_on) const;
  int fd_;
};

}  // namespace trellis::device
