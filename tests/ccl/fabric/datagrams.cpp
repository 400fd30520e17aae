// Datagrams, which carry control messages without connections; and liveness probes, which find out whether anybody
// listens at an address.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>
#include <netinet/in.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "ccl/transports/libfabric/control/liveness_probes.h"
#include "ccl/transports/libfabric/wire/endpoint_wire.h"
#include "net/socket.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto far = 20s;

std::vector<std::byte> loopback(int family) {
  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto bytes = family == AF_INET ? std::as_bytes(std::span(&four, 1)) : std::as_bytes(std::span(&six, 1));
  return {bytes.begin(), bytes.end()};
}

// One of two endpoints, which can receive one message at a time.
struct End {
  explicit End(int family) : wire(open_datagram_wire(loopback(family))) { listen(); }
  void listen() { wire->receive({room.data(), room.size(), nullptr}, in); }

  // Waits for the next event of a send or a receive.
  WireEvent next() {
    std::array<WireEvent, 1> events;
    for (const Deadline end = Clock::now() + far; Clock::now() < end; std::this_thread::sleep_for(1ms))
      if (wire->poll(events) == 1) return events[0];
    ADD_FAILURE() << "nothing happened";
    return {};
  }
  int send(fi_addr_t to, std::string_view text) {
    EXPECT_TRUE(wire->send(to, {text.data(), text.size(), nullptr}, out));
    const WireEvent e = next();
    EXPECT_EQ(e.operation, &out);
    return e.error;
  }
  std::string_view heard() {
    const WireEvent e = next();
    EXPECT_EQ(e.operation, &in);
    return {reinterpret_cast<const char*>(room.data())};
  }

  std::array<std::byte, 64> room = {};
  WireOperation in, out;
  std::unique_ptr<Wire> wire;
};

// The address families of which this machine has a loopback address: not every machine has IPv6.
std::vector<int> families() {
  if (open_datagram_wire(loopback(AF_INET6)) == nullptr) return {AF_INET};
  return {AF_INET, AF_INET6};
}

TEST(Datagrams, GoToAPeerAndBack) {
  for (const int family : families()) {
    End one(family), other(family);
    const fi_addr_t there = one.wire->know(other.wire->address(), 1), here = other.wire->know(one.wire->address(), 0);
    EXPECT_EQ(one.send(there, "a question"), 0);
    EXPECT_EQ(other.heard(), "a question");
    other.listen();
    EXPECT_EQ(other.send(here, "an answer"), 0);
    EXPECT_EQ(one.heard(), "an answer");
    one.listen();
    EXPECT_EQ(one.send(there, "next"), 0);
    EXPECT_EQ(other.heard(), "next") << "nothing of the longer one before";
  }
}

TEST(Datagrams, WhatIsLongerThanItsRoomIsNoMessage) {
  End one(AF_INET), other(AF_INET);
  const fi_addr_t there = one.wire->know(other.wire->address(), 1);
  EXPECT_EQ(one.send(there, std::string(200, 'x')), 0);
  EXPECT_EQ(one.send(there, ""), 0);
  EXPECT_EQ(one.send(there, "fits"), 0);
  EXPECT_EQ(other.heard(), "fits");
}

TEST(Datagrams, AreRefusedWhereNobodyIsUntilSomebodyIsHeard) {
  for (const int family : families()) {
    End one(family), third(family);
    const fi_addr_t to_third = one.wire->know(third.wire->address(), 2);
    auto other = std::make_unique<End>(family);
    const fi_addr_t there = one.wire->know(other->wire->address(), 1);
    EXPECT_EQ(one.send(there, "hello"), 0);
    other.reset();
    int error = 0;
    for (const Deadline end = Clock::now() + far; error == 0 && Clock::now() < end; std::this_thread::sleep_for(1ms))
      error = one.send(there, "are you there?");
    EXPECT_EQ(error, ECONNREFUSED);
    EXPECT_EQ(one.send(to_third, "and you?"), 0) << "what another refuses does not concern it";
    EXPECT_EQ(third.heard(), "and you?");
  }
}

TEST(Datagrams, NeedAnAddressOfIp) {
  const std::vector<std::byte> name(sizeof(sockaddr_in), std::byte{'f'});
  EXPECT_EQ(open_datagram_wire(name), nullptr);
  EXPECT_EQ(open_datagram_wire({}), nullptr);
}

std::vector<std::size_t> refused_in_time(LivenessProbes& knocks) {
  for (const Deadline end = Clock::now() + far; Clock::now() < end; std::this_thread::sleep_for(1ms))
    if (std::vector<std::size_t> places = knocks.refused(); !places.empty()) return places;
  return {};
}

TEST(LivenessProbes, TellWhereNobodyListens) {
  net::Descriptor listens = net::listen_at("127.0.0.1", 0), ends = net::listen_at("127.0.0.1", 0);
  const net::Address there = net::local_address(listens), gone = net::local_address(ends);
  ends = net::Descriptor();
  LivenessProbes knocks;
  knocks.begin(3, there);  // nobody accepts it: the process may be stopped
  knocks.begin(5, gone);
  EXPECT_EQ(refused_in_time(knocks), std::vector<std::size_t>{5});
  EXPECT_TRUE(knocks.refused().empty()) << "each is told once";
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
