// What ranks publish: which messages are accepted, and which of two states is kept.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

PublicState state(Rank from, Rank to, std::uint64_t version) {
  PublicState s;
  s.head.from = from;
  s.head.to = to;
  s.head.version = s.head.number = version;
  s.head.posts = static_cast<std::uint32_t>(version);
  return s;
}

TEST(PublishedStates, AcceptOnceWhatIsSaidToThisRank) {
  Parts zero(0, 3, 10s);
  EXPECT_FALSE(zero.states.accept(state(1, 2, 1).head));
  EXPECT_FALSE(zero.states.accept(state(0, 0, 1).head));
  EXPECT_FALSE(zero.states.accept(state(3, 0, 1).head));
  EXPECT_TRUE(zero.states.accept(state(1, 0, 1).head));
  EXPECT_FALSE(zero.states.accept(state(1, 0, 1).head));
}

TEST(PublishedStates, TheLatestStaysWhateverTheOrder) {
  Parts zero(0, 2, 10s);
  for (const std::uint64_t version : {2, 3, 1}) zero.states.take(state(1, 0, version));
  EXPECT_EQ(zero.states.of(1).head.posts, 3U);
}

TEST(PublishedStates, MessagesAreNumberedForEachRank) {
  Parts zero(0, 3, 10s);
  EXPECT_EQ(zero.states.begin_message(1).number, 1U);
  EXPECT_EQ(zero.states.begin_message(2).number, 1U);
  const PublicStateHeader& h = zero.states.begin_message(1);
  EXPECT_EQ(h.number, 2U);
  EXPECT_EQ(h.version, 3U);
  EXPECT_EQ(h.to, 1);
}

TEST(PublishedStates, OthersAreToldWhatIsAnnounced) {
  Parts zero(0, 2, 10s);
  zero.states.change([](PublicState& s) { s.head.posts = 4; });
  EXPECT_FALSE(zero.queue.owes(1));
  zero.states.announce([](PublicState& s) { s.head.left = true; });
  EXPECT_TRUE(zero.queue.owes(1));
  EXPECT_EQ(zero.states.of(0).head.posts, 4U);
  EXPECT_TRUE(zero.states.left(0));
}

// A rank passes the latest published state on to each neighbour but the one that it came from.
TEST(PublishedStates, NeighboursPassOnWhatIsPublished) {
  Parts one(1, 64, 10s);
  PublicState s = state(0, 1, 1);
  s.head.edition = 1;
  one.states.take(s);
  std::vector<std::byte> bytes;
  for (const Rank to : {2, 0}) {
    one.states.begin_message(to);
    bytes.resize(one.states.write(to, 0, 4096, bytes));
    PublicState read;
    ASSERT_TRUE(read_public(bytes, read));
    EXPECT_EQ(read.relayed.empty(), to == 0) << to;
  }
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
