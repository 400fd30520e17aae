// What callers without the secret cannot do: use up the program's descriptors, sit between two ends, or keep ranks from
// being served.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <thread>

#include "ccl/rendezvous/tcp/authenticated_frame.h"
#include "ccl/rendezvous/tcp/greeting.h"
#include "ccl/rendezvous/tcp/server.h"
#include "ccl/rendezvous/tcp/store_client.h"
#include "net/sha256.h"
#include "tests/ccl/rendezvous/relay.h"
#include "tests/why.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

// Sets this process's soft limit of descriptors while it lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower = {limit, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

// A process that calls at a port for as long as this lives, and holds the last `held` connections. While its calls go
// well it allocates nothing: another thread of its parent may have held the allocator's lock when it was forked.
class Flood {
 public:
  Flood(int port, std::size_t held, const Bytes& said = {}) {
    const net::Address to = net::addresses_of("127.0.0.1", port).front();
    std::vector<net::Descriptor> sockets(held);
    pid_ = fork();
    if (pid_ == 0) run(to, sockets, said);
  }
  ~Flood() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  [[noreturn]] static void run(const net::Address& to, std::span<net::Descriptor> sockets, const Bytes& said) {
    alarm(60);
    for (std::size_t i = 0;; i = (i + 1) % sockets.size()) try {
        sockets[i] = net::Descriptor();
        sockets[i] = net::connect_before(to, Clock::now() + 1s);
        if (sockets[i] && !said.empty()) net::send_before(sockets[i], said, Clock::now() + 1s);
      } catch (const std::system_error&) {
      }
  }
  pid_t pid_ = -1;
};

class Strangers : public testing::Test {
 protected:
  std::shared_ptr<Store> join(Clock::duration patience = 60s) {
    return tcp_store("127.0.0.1", server->port(), "right", Clock::now() + patience);
  }
  Bytes hello(const char* secret) {
    const StoreHello h{.port = static_cast<std::uint16_t>(server->port())};
    return net::GreetingCaller(store_greeting, secret, h.terms()).hello();
  }
  // Whether the server refuses anybody in time.
  bool refuses() {
    for (const Deadline end = Clock::now() + 60s; Clock::now() < end; std::this_thread::sleep_for(1ms))
      if (server->refused() != 0) return true;
    return false;
  }
  std::unique_ptr<TcpStoreServer> server = tcp_store_server({.address = "127.0.0.1", .secret = "right"});
};

TEST_F(Strangers, TakeNoMoreThanASmallShareOfTheDescriptors) {
  const std::ptrdiff_t before = open_descriptors();
  const DescriptorLimit limit(256);
  const Flood flood(server->port(), 200);
  std::ptrdiff_t most = 0;
  for (const Deadline end = Clock::now() + 60s; server->refused() <= 400;) {
    ASSERT_LT(Clock::now(), end) << server->refused() << " strangers were refused";
    most = std::max(most, open_descriptors());
  }
  EXPECT_LE(most, before + 256 / 16);
}

// Strangers call with a hello that has a wrong secret, and without any.
TEST_F(Strangers, DoNotKeepOutWhoKnowsTheSecret) {
  const DescriptorLimit limit(256);
  for (const Bytes& said : {Bytes(), hello("wrong")}) {
    const Flood flood(server->port(), 200, said);
    ASSERT_TRUE(refuses());
    for (int i = 0; i < 5; ++i) EXPECT_GT(join()->add("n", 1), 0);
  }
}

// A stranger who has heard a hello can repeat it, but that proves nothing.
TEST_F(Strangers, WhoRepeatAHelloDoNotKeepThemOutEither) {
  const DescriptorLimit limit(256);
  const Bytes heard = hello("right");
  const Flood flood(server->port(), 200, heard);
  ASSERT_TRUE(refuses());
  for (int i = 0; i < 5; ++i) EXPECT_GT(join()->add("n", 1), 0);
}

// A rank that looks for a job's store may be refused, and look on until the job has ended: the error tells of the
// refusal.
TEST_F(Strangers, AreToldOfTheirSecretAlsoWhenTheStoreHasEndedSince) {
  const net::Address place = net::addresses_of("127.0.0.1", server->port()).front();
  std::string told;
  std::thread looking([&] {
    told = why<TimedOut>([&] {
      find_tcp_store({.places = {place}, .secret = "wrong", .name = "the store", .strangers_end_it = false},
                     Clock::now() + 6s);
    });
  });
  EXPECT_TRUE(refuses());
  server.reset();
  looking.join();
  EXPECT_NE(told.find("secret"), std::string::npos) << told;
}

TEST_F(Strangers, CannotPassConnectionsOnFromAnotherPort) {
  const Relay relay(net::listen_at("127.0.0.1", 0), [&] { return server->port(); });
  try {
    tcp_store("127.0.0.1", relay.port(), "right", Clock::now() + 60s);
    FAIL() << "joined through something in between";
  } catch (const std::system_error& error) {
    EXPECT_NE(std::string(error.what()).find("passes connections on"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(refuses());  // it counts in a thread of its own
  EXPECT_EQ(server->refused(), 1);
}

// A relay at another address with the same port, which the two ends can't notice, can still change nothing.
TEST_F(Strangers, WhoPassConnectionsOnChangeNothing) {
  join()->set("note", net::bytes_of("said by a rank"));
  constexpr std::size_t let_in = length_bytes + 1 + code_bytes;
  for (const bool of_client : {true, false}) {
    // The byte that the relay changes: in the key of the client's first request, or in the server's reply.
    const std::size_t target = of_client ? store_greeting.hello_bytes() + net::proof_bytes + length_bytes + 3
                                         : net::answer_bytes + let_in + length_bytes + 1;
    std::size_t seen = 0;
    const Relay relay(
        net::listen_at("127.0.0.2", server->port()), [&] { return server->port(); },
        [&](bool from_client, std::span<std::byte> bytes) {
          if (from_client != of_client) return;
          if (target >= seen && target < seen + bytes.size()) bytes[target - seen] ^= std::byte{1};
          seen += bytes.size();
        });
    const auto store = tcp_store("127.0.0.2", server->port(), "right", Clock::now() + 60s);
    EXPECT_THROW(store->get("note", Clock::now() + 60s), std::system_error);
  }
  EXPECT_EQ(text_of(join()->get("note", Clock::now())), "said by a rank");
}

}  // namespace
}  // namespace trellis::ccl
