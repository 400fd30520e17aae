// A caller from outside the job is not taken for a peer, and costs the job nothing.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "device/messages/tcp_messenger.h"
#include "net/descriptor.h"
#include "tests/device/standin.h"

namespace trellis::device {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto patience = 60s;

net::Deadline far() { return steady_clock::now() + patience; }

struct Secret {
  explicit Secret(const char* text) { setenv("TRELLIS_SECRET", text, 1); }  // NOLINT(concurrency-mt-unsafe)
  ~Secret() { unsetenv("TRELLIS_SECRET"); }                                 // NOLINT(concurrency-mt-unsafe)
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
};

template <class Ask>
bool soon(Ask&& ask) {
  for (const net::Deadline end = far(); steady_clock::now() < end; std::this_thread::sleep_for(1ms))
    if (ask()) return true;
  return false;
}

net::Address listener_of_core(int core) { return canonical(loopback, first_message_port() + core); }

net::Descriptor connection_to(int core) { return net::connect_before(listener_of_core(core), far()); }

std::size_t gone_of(const std::vector<net::Descriptor>& all) {
  return static_cast<std::size_t>(std::ranges::count_if(all, net::has_gone));
}

// A stranger says all that the peer would, except for the proof.
TEST(Strangers, AreNotTakenForThePeerThatIsAwaited) {
  const Secret secret("of the job");
  listen_at_free_ports();
  TcpMessenger receiver(0, patience);
  const auto end = receiver.pair(false, {loopback, 1});
  const ConnectionHello as_peer{.from = 1, .to = 0, .first_port = first_message_port()};
  const net::GreetingCaller guess(call_greeting, "another", as_peer.terms());
  const net::Descriptor stranger = connection_to(0);
  send_all(stranger, guess.hello(), far());
  std::byte verdict{};
  receive_all(stranger, {&verdict, 1}, far());
  EXPECT_EQ(static_cast<net::Verdict>(verdict), net::Verdict::other_secret);
  EXPECT_TRUE(soon([&] { return net::has_gone(stranger); }));
  EXPECT_FALSE(end->is_connected());
  // The awaited peer itself is taken for the peer.
  TcpMessenger sender(1, patience);
  const auto to = sender.pair(true, {loopback, 0});
  EXPECT_TRUE(soon([&] { return end->is_connected() && to->is_connected(); }));
}

TEST(Strangers, AListenerWithAnotherSecretIsSentNothing) {
  listen_at_free_ports();
  const auto receiver = [] {
    const Secret secret("of another job");
    return std::make_unique<TcpMessenger>(0, patience);
  }();
  const Secret secret("of the job");
  TcpMessenger sender(1, patience);
  const auto to = sender.pair(true, {loopback, 0});
  std::string why;
  EXPECT_TRUE(soon([&] {
    try {
      return to->is_connected();
    } catch (const std::system_error& e) {
      why = e.what();
      return true;
    }
  }));
  EXPECT_NE(why.find("TRELLIS_SECRET"), std::string::npos) << why;
}

// More silent connections come than may be kept: they give way to the peer, and nobody waits for them.
TEST(Strangers, SilentConnectionsAreFewAndDelayNobody) {
  listen_at_free_ports();
  TcpMessenger receiver(0, patience), sender(1, patience);
  const std::size_t many = 3 * net::most_silent(net::descriptor_limit());
  std::vector<net::Descriptor> silent;
  for (std::size_t i = 0; i < many; ++i) silent.push_back(connection_to(0));
  EXPECT_TRUE(soon([&] { return gone_of(silent) >= many - net::most_silent(net::descriptor_limit()); }))
      << gone_of(silent);
  const auto to = sender.pair(true, {loopback, 0}), from = receiver.pair(false, {loopback, 1});
  EXPECT_TRUE(soon([&] { return from->is_connected() && to->is_connected(); }));
}

TEST(Strangers, SilentConnectionsEndByThemselves) {
  listen_at_free_ports();
  TcpMessenger receiver(0, patience);
  std::vector<net::Descriptor> silent;
  silent.push_back(connection_to(0));
  EXPECT_TRUE(soon([&] { return gone_of(silent) == 1; }));
}

// Without a secret, any process on this host can greet as one of the job.
TEST(Strangers, CallersThatNobodyAwaitsAreBounded) {
  listen_at_free_ports();
  TcpMessenger receiver(0, patience);
  const auto from_core = [](int core) {
    return call({.from = core, .to = 0, .first_port = first_message_port()}, listener_of_core(0), far());
  };
  std::vector<net::Descriptor> callers;
  for (int i = 0; i < 2 * most_ends; ++i) callers.push_back(from_core(100 + i));
  EXPECT_TRUE(soon([&] { return gone_of(callers) == most_ends; })) << gone_of(callers);
  callers.clear();
  // Those that have gone are forgotten, so that their descriptors are free.
  const auto open = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const auto before = [&] {
    const TcpMessenger other(1, patience);
    return open();
  }();
  EXPECT_TRUE(soon([&] { return open() < before; })) << open() << " descriptors";
}

TEST(Strangers, PeersOfOtherHostsNeedASecret) {
  listen_at_free_ports();
  TcpMessenger core(0, patience);
  const PeerCore elsewhere{"192.0.2.7", 1};  // an address of nobody
  try {
    core.pair(false, elsewhere);
    ADD_FAILURE() << "it was not refused";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::permission_denied);
    EXPECT_NE(std::string(e.what()).find("TRELLIS_SECRET"), std::string::npos) << e.what();
  }
  const Secret secret("of the job");
  EXPECT_NO_THROW(core.pair(false, elsewhere));
}

TEST(Strangers, APortThatIsTakenIsNamedWithItsVariable) {
  listen_at_free_ports();
  const TcpMessenger first(4, patience);
  try {
    const TcpMessenger second(4, patience);
    ADD_FAILURE() << "two listen at one port";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::address_in_use);
    const std::string said = e.what();
    EXPECT_NE(said.find(std::to_string(first_message_port() + 4)), std::string::npos) << said;
    EXPECT_NE(said.find("TRELLIS_NRT_SENDRECV_PORT"), std::string::npos) << said;
  }
}

TEST(Addresses, AnyOfThisHostsOwnIsLoopbacks) {
  EXPECT_EQ(canonical("127.0.0.1", 7).text(), "127.0.0.1:7");
  EXPECT_EQ(canonical("localhost", 7).text(), "127.0.0.1:7");
  for (const auto& [interface, own] : net::own_addresses()) {
    if (own.family() == AF_INET) {
      EXPECT_EQ(canonical(own).host(), loopback) << interface;
    }
  }
  EXPECT_EQ(canonical("192.0.2.7", 7).text(), "192.0.2.7:7");
}

}  // namespace
}  // namespace trellis::device
