// The protocol of TCP stores without connections: who is let in, and that nobody between two ends can change a thing.
#include "ccl/rendezvous/tcp/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace trellis::ccl {
namespace {

constexpr int port = 29500;

// A client and a server that have greeted each other.
struct Pair {
  explicit Pair(const std::string& secret = "secret") {
    Greeting g{.hello = {.port = port}};
    fill_random(g.hello.nonce);
    server.take(bytes_of_hello(g.hello, secret));
    const Bytes answer = server.welcome(secret, port);
    std::copy_n(answer.begin() + 1, g.servers.size(), g.servers.begin());
    sent = FrameChain(frame_key(Side::client, secret, g));
    heard = FrameChain(frame_key(Side::server, secret, g));
    server.take(proof(Side::client, secret, g));
  }
  Session server;
  FrameChain sent{{}}, heard{{}};
};

Bytes set_of(const std::string& key) {
  return body_of(Request{.verb = Verb::set, .key = key, .value = {std::byte{1}, std::byte{2}}});
}

// What comes of bytes: the keys that the server was asked for, or that it refused.
std::string heard_of(Session& server, const Bytes& bytes) {
  std::string keys;
  try {
    server.take(bytes);
    while (const auto request = server.request()) keys += request->key + " ";
  } catch (const Refused&) {
    keys += "refused";
  }
  return keys;
}

TEST(Session, FramesComeOutAsTheyWentIn) {
  Pair p;
  ASSERT_TRUE(p.server.known());
  Bytes all;
  for (const char* key : {"a", "b", "c"}) std::ranges::copy(p.sent.frame(set_of(key)), std::back_inserter(all));
  EXPECT_EQ(heard_of(p.server, all), "a b c ");
  EXPECT_FALSE(p.server.in_the_middle());
}

TEST(Session, EveryFlippedBitIsNoticed) {
  const std::size_t bits = 8 * Pair().sent.frame(set_of("key")).size();
  for (std::size_t bit = 0; bit < bits; ++bit) {
    Pair p;
    Bytes frame = p.sent.frame(set_of("key"));
    frame[bit / 8] ^= std::byte{1} << (bit % 8);
    // A longer frame is waited for, and the next one then fills it up.
    std::string heard = heard_of(p.server, frame);
    if (heard.empty()) heard = heard_of(p.server, p.sent.frame(Bytes(most_body_bytes)));
    EXPECT_TRUE(heard == "refused" || (heard.empty() && p.server.in_the_middle())) << bit << ": " << heard;
  }
}

TEST(Session, FramesLeftOutRepeatedSwappedOrSentBackAreNoticed) {
  const auto refused_after = [](const std::vector<int>& order) {
    Pair p;
    const Bytes frames[] = {p.sent.frame(set_of("0")), p.sent.frame(set_of("1")), p.heard.frame(set_of("back"))};
    std::string heard;
    for (const int f : order) heard += heard_of(p.server, frames[f]);
    return heard;
  };
  EXPECT_EQ(refused_after({0, 1}), "0 1 ");
  EXPECT_EQ(refused_after({1}), "refused");
  EXPECT_EQ(refused_after({0, 0}), "0 refused");
  EXPECT_EQ(refused_after({0, 2}), "0 refused");
  EXPECT_EQ(refused_after({2}), "refused");
}

// Everything that two ends have said goes into what follows: another greeting with the same secret has other keys.
TEST(Session, FramesOfOneConnectionAreNoneOfAnother) {
  Pair one, other;
  EXPECT_EQ(heard_of(other.server, one.sent.frame(set_of("key"))), "refused");
}

TEST(Session, TheServerTellsWhyItDoesNotLetIn) {
  const auto verdict = [](const Hello& hello, const std::string& secret) {
    Session server;
    server.take(bytes_of_hello(hello, secret));
    try {
      server.welcome("secret", port);
    } catch (const Refused& refused) {
      return refused.verdict;
    }
    return Verdict::welcome;
  };
  EXPECT_EQ(verdict({.port = port}, "secret"), Verdict::welcome);
  EXPECT_EQ(verdict({.port = port}, "Secret"), Verdict::other_secret);
  EXPECT_EQ(verdict({.port = port + 1}, "secret"), Verdict::elsewhere);
}

TEST(Session, AHelloThatWasChangedIsNoHello) {
  const Bytes good = bytes_of_hello({.port = port}, "secret");
  for (std::size_t i = 0; i < good.size(); ++i) {
    Session server;
    Bytes bad = good;
    bad[i] ^= std::byte{1};
    EXPECT_THROW(
        {
          server.take(bad);
          server.welcome("secret", port);
        },
        Refused)
        << i;
  }
}

}  // namespace
}  // namespace trellis::ccl
