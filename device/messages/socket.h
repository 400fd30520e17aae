// TCP, as messages between devices need it: whole messages, with deadlines. What fails is a system_error: timed_out,
// operation_canceled, connection_reset, invalid_argument, or that of the system call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace trellis::device {

using Deadline = std::chrono::steady_clock::time_point;

struct Address {
  std::string host;
  std::uint16_t port = 0;
};
Address address_of(const std::string& text);  // "10.0.0.1:46820"

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
  Socket accept(Deadline);   // one without a descriptor at the deadline
  std::string peer() const;  // its address

  void send(std::span<const std::byte>, Deadline, const std::function<bool()>& go_on);
  void receive(std::span<std::byte>, Deadline, const std::function<bool()>& go_on);
  int fd() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void stop();  // ends what others do with it

 private:
  bool wait(short what, Deadline, const std::function<bool()>& go_on) const;
  int fd_;
};

}  // namespace trellis::device
