#if __has_include(<rdma/fabric.h>)

#include "ccl/transports/libfabric/wire/tcp_defer_accept.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>
#include <vector>

namespace trellis::ccl::libfabric {
namespace {

class Socket {
 public:
  Socket() : number_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  ~Socket() {
    if (number_ >= 0) close(number_);
  }
  operator int() const { return number_; }

 private:
  int number_;
};

sockaddr_in name_of(int socket) {
  sockaddr_in name = {};
  socklen_t bytes = sizeof name;
  getsockname(socket, reinterpret_cast<sockaddr*>(&name), &bytes);
  return name;
}

Socket listening(in_addr_t at) {
  Socket s;
  sockaddr_in name = {.sin_family = AF_INET, .sin_addr = {htonl(at)}};
  EXPECT_EQ(bind(s, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(listen(s, 16), 0);
  return s;
}

Socket connected(const sockaddr_in& to) {
  Socket s;
  EXPECT_EQ(connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return s;
}

bool is_ready(int listener, int milliseconds) {
  pollfd one = {.fd = listener, .events = POLLIN};
  return poll(&one, 1, milliseconds) == 1;
}

TEST(Listener, AcceptsThoseWhoSpeakAndNobodyElse) {
  const Socket listener = listening(INADDR_LOOPBACK), other = listening(INADDR_LOOPBACK);
  const sockaddr_in name = name_of(listener);
  ASSERT_TRUE(accept_only_who_speaks(std::as_bytes(std::span(&name, 1))));
  std::vector<Socket> silent;
  for (int i = 0; i < 5; ++i) silent.push_back(connected(name));
  const Socket speaks = connected(name);
  ASSERT_EQ(send(speaks, "x", 1, 0), 1);
  ASSERT_TRUE(is_ready(listener, 20'000));
  const Socket accepted(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  sockaddr_in from = {};
  socklen_t bytes = sizeof from;
  ASSERT_EQ(getpeername(accepted, reinterpret_cast<sockaddr*>(&from), &bytes), 0);
  EXPECT_EQ(from.sin_port, name_of(speaks).sin_port);
  EXPECT_FALSE(is_ready(listener, 0));
  const Socket guest = connected(name_of(other));
  EXPECT_TRUE(is_ready(other, 20'000)) << "another listener of the process is left alone";
}

TEST(Listener, IsFoundWhereItListensForAllInterfaces) {
  const Socket listener = listening(INADDR_ANY);
  sockaddr_in name = name_of(listener);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<std::byte> address(sizeof name + 40);  // as some providers return it: with unused room at the end
  std::memcpy(address.data(), &name, sizeof name);
  EXPECT_TRUE(accept_only_who_speaks(address));
}

TEST(Listener, IsNotThereForOtherAddresses) {
  const Socket listener = listening(INADDR_LOOPBACK);
  sockaddr_in name = name_of(listener);
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
  EXPECT_FALSE(accept_only_who_speaks(std::as_bytes(std::span(&name, 1))));
  EXPECT_FALSE(accept_only_who_speaks(std::as_bytes(std::span("fi_shm://12:0"))));
  EXPECT_FALSE(accept_only_who_speaks({}));
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
