// Sockets: each wait ends at its deadline or when its caller gives up, and addresses are printed as they were typed.
#include "net/socket.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <system_error>
#include <thread>

#include "net/sha256.h"

namespace trellis::net {
namespace {

using namespace std::chrono_literals;

Deadline in(Clock::duration d) { return Clock::now() + d; }

struct Ends {
  Descriptor listening = listen_at("127.0.0.1", 0);
  Descriptor near = connect_before(local_address(listening), in(60s));
  Descriptor far = [this] {
    ready_before(listening.number(), POLLIN, in(60s));
    return Descriptor(accept(listening.number(), nullptr, nullptr));
  }();
};

TEST(Socket, TransfersAllBytesHoweverLongTheyTake) {
  Ends e;
  std::vector<std::byte> sent(8 << 20, std::byte{5}), received(sent.size());
  std::thread sender([&] { EXPECT_TRUE(send_before(e.near, sent, in(60s))); });
  EXPECT_TRUE(receive_before(e.far, received, in(60s)));
  sender.join();
  EXPECT_EQ(sent, received);
}

TEST(Socket, AWaitEndsAtItsDeadline) {
  const Ends e;
  std::byte b{};
  const Deadline began = Clock::now();
  EXPECT_FALSE(receive_before(e.near, {&b, 1}, in(20ms)));
  EXPECT_GE(Clock::now() - began, 20ms);
  const std::vector<std::byte> much(64 << 20);
  EXPECT_FALSE(send_before(e.near, much, in(20ms)));
}

TEST(Socket, AWaitEndsWhenItsCallerDoesNotGoOn) {
  const Ends e;
  std::byte b{};
  int asked = 0;
  try {
    receive_before(e.near, {&b, 1}, WaitLimit(in(60s), [&] { return ++asked < 3; }));
    ADD_FAILURE() << "it went on";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::operation_canceled);
  }
  EXPECT_EQ(asked, 3);
}

TEST(Socket, APeerThatHasGoneIsAnError) {
  Ends e;
  EXPECT_FALSE(has_gone(e.near));
  EXPECT_TRUE(send_before(e.far, bytes_of("a"), in(60s)));
  e.far = Descriptor();
  std::byte b{};
  EXPECT_FALSE(has_gone(e.near)) << "what it sent was not received";
  EXPECT_TRUE(receive_before(e.near, {&b, 1}, in(60s)));
  EXPECT_TRUE(ready_before(e.near.number(), POLLIN, in(60s)));
  EXPECT_TRUE(has_gone(e.near));
  try {
    receive_before(e.near, {&b, 1}, in(60s));
    ADD_FAILURE() << "it received";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::connection_reset);
  }
}

TEST(Socket, NobodyListensIsToldByErrno) {
  Descriptor listening = listen_at("127.0.0.1", 0);
  const Address there = local_address(listening);
  listening = Descriptor();
  EXPECT_FALSE(connect_before(there, in(60s)));
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST(Socket, APortThatIsTakenIsNamed) {
  const Descriptor first = listen_at("127.0.0.1", 0);
  const Address at = local_address(first);
  EXPECT_FALSE(bound_to(at, SOCK_STREAM));
  try {
    listen_at(at);
    ADD_FAILURE() << "two listen at one port";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::address_in_use);
    EXPECT_NE(std::string(error.what()).find(at.text()), std::string::npos) << error.what();
  }
}

TEST(Address, HostAndPortAreReadAndPrinted) {
  EXPECT_EQ(host_and_port("node0:29500"), std::pair(std::string("node0"), 29'500));
  EXPECT_EQ(host_and_port("[fd00::2]:1"), std::pair(std::string("fd00::2"), 1));
  EXPECT_EQ(host_and_port("fd00::2:29500"), std::pair(std::string("fd00::2"), 29'500));
  for (const char* const wrong : {"", ":", "node0", "node0:", ":29500", "node0:0", "node0:65536", "node0:1x", "[]:1",
                                  "[fd00::2:1", "fd00::2]:1", "[:1", "[fd00::2]", "[fd00::2]:"})
    EXPECT_FALSE(host_and_port(wrong)) << wrong;
  EXPECT_EQ(addresses_of("10.0.0.7", 29'500).front().text(), "10.0.0.7:29500");
  EXPECT_EQ(addresses_of("fd00::2", 29'500).front().text(), "[fd00::2]:29500");
  EXPECT_EQ(addresses_of("fd00::2", 29'500).front().host(), "fd00::2");
  EXPECT_THROW(addresses_of("no-such-host.invalid", 1), std::system_error);
  EXPECT_THROW(addresses_of("::1", 1, AF_INET), std::system_error);
}

TEST(Address, ComesBackFromItsBytes) {
  for (const char* const host : {"10.0.0.7", "fd00::2", "127.0.0.1", "::1", "169.254.1.1", "fe80::1"}) {
    const Address a = addresses_of(host, 29'500).front();
    EXPECT_EQ(address_of(a.number(), 29'500), a) << host;
    const auto raw = std::as_bytes(std::span(&a.storage, 1));
    EXPECT_EQ(address_in(raw.first(a.length)), a) << host;
    EXPECT_FALSE(address_in(raw.first(a.length - 1))) << host;
    EXPECT_FALSE(address_in(raw.first(a.length + 1))) << host;
  }
  EXPECT_FALSE(address_in({}));
  EXPECT_TRUE(addresses_of("127.0.0.9", 1).front().is_loopback());
  EXPECT_TRUE(addresses_of("::1", 1).front().is_loopback());
  EXPECT_FALSE(addresses_of("10.0.0.7", 1).front().is_loopback());
  EXPECT_TRUE(addresses_of("169.254.1.1", 1).front().is_link_local());
  EXPECT_TRUE(addresses_of("fe80::1", 1).front().is_link_local());
  EXPECT_FALSE(addresses_of("fd00::2", 1).front().is_link_local());
}

}  // namespace
}  // namespace trellis::net
