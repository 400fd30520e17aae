// The protocol of TCP stores, without connections: nobody between two ends can change anything unnoticed.
#include "ccl/rendezvous/tcp/store_server_codec.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "ccl/rendezvous/tcp/greeting.h"

namespace trellis::ccl {
namespace {

// A client and a server that have greeted each other.
struct Pair {
  static net::Transcript fresh() {
    return net::GreetingCaller(store_greeting, "secret", StoreHello{.port = 29500}.terms()).transcript();
  }
  explicit Pair(const net::Transcript& said = fresh())
      : server(said), sent(said.key(net::Side::caller)), heard(said.key(net::Side::listener)) {}
  StoreServerCodec server;
  FrameChain sent, heard;
};

Bytes set_of(const std::string& key) {
  return body_of(StoreRequest{.verb = Verb::set, .key = key, .value = {std::byte{1}, std::byte{2}}});
}

// What the server makes of bytes: the keys that it is asked for, or "refused".
std::string heard_of(StoreServerCodec& server, const Bytes& bytes) {
  std::string keys;
  try {
    server.take(bytes);
    while (const auto request = server.request()) keys += request->key + " ";
  } catch (const net::ProtocolError&) {
    keys += "refused";
  }
  return keys;
}

TEST(StoreServerCodec, FramesComeOutAsTheyWentIn) {
  Pair p;
  Bytes all;
  for (const char* key : {"a", "b", "c"}) std::ranges::copy(p.sent.frame(set_of(key)), std::back_inserter(all));
  EXPECT_EQ(heard_of(p.server, all), "a b c ");
  EXPECT_FALSE(p.server.in_the_middle());
}

TEST(StoreServerCodec, EveryFlippedBitIsNoticed) {
  const std::size_t bits = 8 * Pair().sent.frame(set_of("key")).size();
  for (std::size_t bit = 0; bit < bits; ++bit) {
    Pair p;
    Bytes frame = p.sent.frame(set_of("key"));
    frame[bit / 8] ^= std::byte{1} << (bit % 8);
    // If the changed bit makes the frame's length larger, the server waits for the rest, which the next frame then
    // provides.
    std::string heard = heard_of(p.server, frame);
    if (heard.empty()) heard = heard_of(p.server, p.sent.frame(Bytes(most_body_bytes)));
    EXPECT_TRUE(heard == "refused" || (heard.empty() && p.server.in_the_middle())) << bit << ": " << heard;
  }
}

TEST(StoreServerCodec, FramesLeftOutRepeatedSwappedOrSentBackAreNoticed) {
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

// The keys of a connection depend on all that was said in its greeting, so another one with the same secret has others.
TEST(StoreServerCodec, FramesOfOneConnectionAreNoneOfAnother) {
  Pair one, other;
  EXPECT_EQ(heard_of(other.server, one.sent.frame(set_of("key"))), "refused");
}

}  // namespace
}  // namespace trellis::ccl
