// The TCP store against strangers, liars, slow clients, and servers that end.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>

#include "ccl/rendezvous/tcp/authenticated_frame.h"
#include "ccl/rendezvous/tcp/greeting.h"
#include "ccl/rendezvous/tcp/message.h"
#include "ccl/rendezvous/tcp/server.h"
#include "ccl/store.h"
#include "net/sha256.h"
#include "net/socket.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

Deadline in(Clock::duration d) { return Clock::now() + d; }

class TcpStore : public testing::Test {
 protected:
  // The greeting's time is long enough for clients that know the secret, however busy the machine.
  explicit TcpStore(std::chrono::milliseconds greeting = 60s) : greeting_time(greeting) {}

  const std::chrono::milliseconds greeting_time;
  std::mutex mutex;
  std::vector<std::string> refusals;
  std::unique_ptr<TcpStoreServer> server = tcp_store_server({.secret = "right",
                                                             .on_refusal =
                                                                 [this](const std::string& text) {
                                                                   const std::lock_guard lock(mutex);
                                                                   refusals.push_back(text);
                                                                 },
                                                             .greeting = greeting_time});

  std::shared_ptr<Store> join() { return tcp_store("127.0.0.1", server->port(), "right", in(60s)); }
  net::Descriptor stranger() {
    return net::connect_before(net::addresses_of("127.0.0.1", server->port()).front(), in(60s));
  }

  // Whether the server closes the connection; what it sends before is ignored.
  bool hangs_up(const net::Descriptor& socket) {
    const Deadline deadline = in(60s);
    std::byte ignored{};
    while (net::ready_before(socket.number(), POLLIN, deadline)) {
      const ssize_t got = recv(socket.number(), &ignored, 1, 0);
      if (got == 0 || (got < 0 && errno == ECONNRESET)) return true;
    }
    return false;
  }

  StoreHello hello() { return {.port = static_cast<std::uint16_t>(server->port())}; }
  static net::GreetingCaller calling(const StoreHello& hello) { return {store_greeting, "right", hello.terms()}; }

  // Says hello, and hears the answer. Returns the proof that is to follow.
  static net::Digest greeted(const net::Descriptor& socket, net::GreetingCaller& c) {
    std::array<std::byte, net::answer_bytes> answer;
    EXPECT_TRUE(net::send_before(socket, c.hello(), in(60s)));
    EXPECT_TRUE(net::receive_before(socket, answer, in(60s)));
    return c.proof(answer);
  }

  // A connection that has proven its knowledge of the secret, with which a test then misbehaves.
  struct Known {
    net::Descriptor socket;
    FrameChain sent;
  };
  Known known() {
    net::Descriptor socket = stranger();
    net::GreetingCaller c = calling(hello());
    EXPECT_TRUE(net::greet(socket, c, in(60s)));
    std::array<std::byte, length_bytes + 1 + code_bytes> let_in;
    EXPECT_TRUE(net::receive_before(socket, let_in, in(60s)));
    return {std::move(socket), FrameChain(c.transcript().key(net::Side::caller))};
  }

  bool was_refused_for(const std::string& why) {
    for (const Deadline deadline = in(60s); Clock::now() < deadline; std::this_thread::sleep_for(2ms)) {
      const std::lock_guard lock(mutex);
      if (std::ranges::any_of(refusals, [&](const std::string& r) { return r.find(why) != std::string::npos; }))
        return true;
    }
    return false;
  }
};

TEST_F(TcpStore, AWrongSecretIsToldAtOnceToBothSides) {
  const Deadline began = Clock::now();
  try {
    tcp_store("127.0.0.1", server->port(), "wrong", in(60s));
    FAIL() << "joined with a wrong secret";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code().value(), EACCES) << error.what();
    EXPECT_NE(std::string(error.what()).find("another secret"), std::string::npos) << error.what();
  }
  EXPECT_LT(Clock::now() - began, 30s);
  EXPECT_TRUE(was_refused_for("does not know the secret"));
}

class WaitingTcpStore : public TcpStore {
 protected:
  WaitingTcpStore() : TcpStore(6s) {}
};

// A stranger can repeat a hello that he has heard, but not the proof that follows it.
TEST_F(WaitingTcpStore, WhoRepeatsAHelloStillHasToProveItself) {
  net::GreetingCaller c = calling(hello());
  const net::Descriptor silent = stranger(), liar = stranger();
  greeted(silent, c);
  greeted(liar, c);
  // The server's own proof sent back to it is the wrong one: each side's proof says whose it is.
  ASSERT_TRUE(net::send_before(liar, c.transcript().proof(net::Side::listener), in(60s)));
  EXPECT_TRUE(hangs_up(liar));
  EXPECT_TRUE(was_refused_for("does not know the secret"));
  EXPECT_TRUE(hangs_up(silent));
  EXPECT_TRUE(was_refused_for("not proven itself in time"));
}

TEST_F(TcpStore, AHelloForAnotherPortOrStoreIsRefused) {
  StoreHello elsewhere = hello(), other = hello();
  ++elsewhere.port;
  other.store.fill(std::byte{1});
  for (const auto& [said, verdict] :
       {std::pair(elsewhere, net::Verdict::elsewhere), std::pair(other, net::Verdict::gone)}) {
    const net::Descriptor socket = stranger();
    std::byte answer{};
    ASSERT_TRUE(net::send_before(socket, calling(said).hello(), in(60s)));
    ASSERT_TRUE(net::receive_before(socket, {&answer, 1}, in(60s)));
    EXPECT_EQ(static_cast<net::Verdict>(answer), verdict);
    EXPECT_TRUE(hangs_up(socket));
  }
  EXPECT_TRUE(was_refused_for("has called at port " + std::to_string(elsewhere.port)));
  EXPECT_TRUE(was_refused_for("a store that is not kept here"));
}

TEST_F(TcpStore, AStrangerIsRefusedAtItsFirstWrongByte) {
  const net::Descriptor socket = stranger();
  ASSERT_TRUE(net::send_before(socket, net::bytes_of("GET / HTTP/1.1\r\n"), in(60s)));
  EXPECT_TRUE(hangs_up(socket));
  EXPECT_TRUE(was_refused_for("127.0.0.1:"));
  EXPECT_TRUE(was_refused_for("does not begin with a hello"));
}

class ImpatientTcpStore : public TcpStore {
 protected:
  ImpatientTcpStore() : TcpStore(300ms) {}
};

TEST_F(ImpatientTcpStore, WhoComesAndSaysNothingIsClosed) {
  const net::Descriptor silent = stranger(), slow = stranger();
  std::thread drips([&] {
    try {
      const net::GreetingCaller caller = calling({});
      for (std::byte b : caller.hello()) {
        if (!net::send_before(slow, {&b, 1}, in(1s))) return;
        std::this_thread::sleep_for(50ms);
      }
    } catch (const std::system_error&) {  // closed, as it should be
    }
  });
  EXPECT_TRUE(hangs_up(silent));
  EXPECT_TRUE(hangs_up(slow));
  drips.join();
  EXPECT_TRUE(was_refused_for("not proven itself in time"));
}

TEST_F(TcpStore, MalformedFramesEndTheConnectionAndNothingElse) {
  const auto store = join();
  Bytes too_long = body_of(StoreRequest{.verb = Verb::add, .key = "k", .amount = 1});
  too_long.push_back(std::byte{0});
  const std::vector<Bytes> bodies = {{std::byte{9}},                              // an unknown verb
                                     {std::byte{1}},                              // no key
                                     {std::byte{2}, std::byte{0}, std::byte{0}},  // an empty one
                                     {std::byte{4}, std::byte{0}, std::byte{0}},  // a leave without a number
                                     {std::byte{1}, std::byte{255}, std::byte{255}, std::byte{'k'}},
                                     too_long};
  std::vector<std::function<Bytes(FrameChain&)>> frames = {
      [](FrameChain&) { return Bytes(length_bytes, std::byte{0}); },     // no length
      [](FrameChain&) { return Bytes(length_bytes, std::byte{0xff}); },  // 4 GiB
      [](FrameChain& sent) {                                             // not the first
        sent.frame(body_of(StoreRequest{.key = "k"}));
        return sent.frame(body_of(StoreRequest{.key = "k"}));
      },
      [](FrameChain& sent) {  // changed on its way
        Bytes frame = sent.frame(body_of(StoreRequest{.verb = Verb::set, .key = "k", .value = Bytes(3)}));
        frame[length_bytes + 4] ^= std::byte{1};
        return frame;
      }};
  for (const Bytes& body : bodies) frames.emplace_back([&](FrameChain& sent) { return sent.frame(body); });
  for (const auto& frame : frames) {
    const std::int64_t before = server->refused();
    Known client = known();
    ASSERT_TRUE(net::send_before(client.socket, frame(client.sent), in(60s)));
    EXPECT_TRUE(hangs_up(client.socket));
    EXPECT_EQ(server->refused(), before + 1);
    EXPECT_GT(store->add("alive", 1), 0);
  }
}

TEST_F(TcpStore, AWaitingClientMayVanish) {
  const auto store = join();
  {
    Known client = known();
    ASSERT_TRUE(
        net::send_before(client.socket, client.sent.frame(body_of(StoreRequest{.key = "never", .wait = 1h})), in(60s)));
    std::this_thread::sleep_for(20ms);
  }
  std::this_thread::sleep_for(20ms);
  store->set("never", net::bytes_of("but now"));
  EXPECT_EQ(store->get("never", in(60s)).size(), 7U);
}

// Eight clients count together and pass a note around while a thousand connections send arbitrary bytes.
TEST_F(TcpStore, AThousandStrangersDisturbNobody) {
  constexpr int clients = 8, rounds = 100, strangers = 1000;
  std::atomic<int> failed = 0;
  std::vector<std::thread> job;
  for (int c = 0; c < clients; ++c)
    job.emplace_back([&, c] {
      try {
        const auto store = join();
        for (int r = 0; r < rounds; ++r) {
          const auto key = [r](int of) { return std::to_string(r) + "/" + std::to_string(of); };
          store->set(key(c), net::bytes_of(key(c)));
          const Bytes got = store->get(key((c + 1) % clients), in(60s));
          if (!std::ranges::equal(got, net::bytes_of(key((c + 1) % clients)))) ++failed;
          store->add("total", 1);
        }
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    });
  std::mt19937 random(7);
  std::vector<net::Descriptor> kept;
  for (int s = 0; s < strangers; ++s) {
    net::Descriptor socket = s % 5 == 0 ? known().socket : stranger();
    ASSERT_TRUE(socket);
    Bytes garbage(random() % 300);
    for (std::byte& b : garbage) b = static_cast<std::byte>(random());
    const auto magic = net::bytes_of(store_greeting.magic);
    if (s % 3 == 0) garbage.insert(garbage.begin(), magic.begin(), magic.end());
    try {
      net::send_before(socket, garbage, in(60s));
    } catch (const std::system_error&) {  // turned away while it was still talking
    }
    if (s % 7 == 0) kept.push_back(std::move(socket));
  }
  for (std::thread& t : job) t.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(join()->add("total", 0), clients * rounds);
  EXPECT_GT(server->refused(), strangers / 2);
}

TEST_F(TcpStore, MoreStrangersThanItKeepsPushOutTheOldestOnly) {
  const auto store = join();
  std::vector<net::Descriptor> idle;
  for (int i = 0; i < 300; ++i) idle.push_back(stranger());
  EXPECT_EQ(store->add("n", 1), 1);
  const auto late = join();
  EXPECT_EQ(late->add("n", 1), 2);
}

TEST_F(TcpStore, WhoWaitsLearnsAtOnceThatTheServerHasEnded) {
  std::vector<std::thread> waiting;
  std::atomic<int> told = 0;
  for (int i = 0; i < 4; ++i)
    waiting.emplace_back([&, store = join()] {
      try {
        store->get("never", in(60s));
      } catch (const std::system_error& error) {
        EXPECT_NE(std::string(error.what()).find("has ended"), std::string::npos) << error.what();
        ++told;
      }
    });
  std::this_thread::sleep_for(100ms);
  const auto idle = join();
  const Deadline began = Clock::now();
  server.reset();
  for (std::thread& t : waiting) t.join();
  EXPECT_EQ(told, 4);
  EXPECT_THROW(idle->set("k", {}), std::system_error);
  EXPECT_THROW(idle->get("k", in(60s)), std::system_error);
  EXPECT_LT(Clock::now() - began, 30s);
}

// A port at which nobody listens, and which the kernel gives to no other socket: only a server that is told the port
// may listen there.
struct HeldPort {
  net::Descriptor held = net::bound_to(net::addresses_of("127.0.0.1", 0).front(), SOCK_STREAM);
  int port = net::local_address(held).port();
};

TEST_F(TcpStore, AClientMayComeBeforeTheServer) {
  const HeldPort held;
  std::thread early([&] { EXPECT_EQ(tcp_store("127.0.0.1", held.port, "right", in(60s))->add("n", 1), 1); });
  std::this_thread::sleep_for(100ms);
  const auto later = tcp_store_server({.port = held.port, .secret = "right"});
  early.join();
}

TEST_F(TcpStore, NobodyThereIsSaidByTheDeadline) {
  const HeldPort held;
  const Deadline began = Clock::now();
  try {
    tcp_store("127.0.0.1", held.port, "right", in(200ms));
    FAIL() << "found a store where there is none";
  } catch (const TimedOut& error) {
    EXPECT_NE(std::string(error.what()).find("refused"), std::string::npos) << error.what();
  }
  EXPECT_GE(Clock::now() - began, 200ms);
  EXPECT_LT(Clock::now() - began, 30s);
  EXPECT_THROW(tcp_store("127.0.0.1", 0, "", in(1s)), std::invalid_argument);
  EXPECT_THROW(tcp_store("no-such-host.invalid", 1, "", in(1s)), std::system_error);
}

TEST_F(TcpStore, APortThatIsTakenIsAnError) {
  EXPECT_THROW(tcp_store_server({.port = server->port()}), std::system_error);
}

TEST_F(TcpStore, OverIPv6Too) {
  try {
    tcp_store("::1", server->port(), "right", in(2s))->set("k", {});
  } catch (const TimedOut&) {
    GTEST_SKIP() << "no IPv6 on this machine";
  }
}

TEST_F(TcpStore, ServesSixtyFourRanksAtOnce) {
  constexpr int clients = 64;
  std::atomic<int> met = 0;
  std::vector<std::thread> ranks;
  for (int r = 0; r < clients; ++r)
    ranks.emplace_back([&, r] {
      const auto store = join();
      store->set(std::to_string(r), net::bytes_of(std::to_string(r)));
      for (int o = 0; o < clients; ++o)
        met += std::ranges::equal(store->get(std::to_string(o), in(60s)), net::bytes_of(std::to_string(o)));
    });
  for (std::thread& t : ranks) t.join();
  EXPECT_EQ(met, clients * clients);
}

}  // namespace
}  // namespace trellis::ccl
