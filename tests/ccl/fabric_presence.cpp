// What ranks learn of each other over control, without a fabric.
#if __has_include(<rdma/fabric.h>)

#include "ccl/transports/libfabric/presence/presence.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

// One on each host: "h0", "h1", ...
Presence presence_of(Rank rank, Rank ranks) {
  std::vector<std::size_t> places(static_cast<std::size_t>(ranks));
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::vector<Member> members;
  for (Rank r = 0; r < ranks; ++r) members.push_back({.host = "h" + std::to_string(r)});
  return {7, rank, std::move(places), std::move(members), 10s, 1};
}

// A message from one to the other.
void tell(Presence& from, Presence& to) {
  std::vector<std::byte> message;
  message.resize(from.write_for(to.rank(), message));
  PublicState state;
  ASSERT_TRUE(read_public(message, state));
  to.hear(state, 0);
}

// In a large communicator only rank 0 hears of all, and the others of the missing one from it.
TEST(Presence, RankZeroTellsWhichRankDidNotJoin) {
  constexpr Rank ranks = 80, absent = 77;
  Presence zero = presence_of(0, ranks), five = presence_of(5, ranks);
  for (Presence* p : {&zero, &five}) p->change([](PublicState& s) { s.head.joined = true; });
  for (Rank r = 1; r < ranks; ++r) {
    if (r == absent) continue;
    Presence other = presence_of(r, ranks);
    other.change([](PublicState& s) { s.head.joined = true; });
    tell(other, zero);
  }
  EXPECT_EQ(zero.not_joined(), std::vector{absent});
  EXPECT_TRUE(five.not_joined().empty()) << "it can't know";
  tell(zero, five);
  EXPECT_EQ(five.missing(), -1);

  five.change([](PublicState& s) { s.head.gives_up = true; });
  tell(five, zero);
  EXPECT_EQ(zero.outcome(), Outcome::dropped);
  tell(zero, five);
  EXPECT_EQ(five.outcome(), Outcome::dropped);
  EXPECT_EQ(five.missing(), absent);
  EXPECT_EQ(five.host(absent), "h77");
}

TEST(Presence, NobodyIsMissingWhenAllHaveJoined) {
  Presence zero = presence_of(0, 2), one = presence_of(1, 2);
  for (Presence* p : {&zero, &one}) p->change([](PublicState& s) { s.head.joined = true; });
  tell(one, zero);
  EXPECT_EQ(zero.settle(Outcome::made), Outcome::made);
  tell(zero, one);
  EXPECT_EQ(one.outcome(), Outcome::made);
  EXPECT_EQ(one.missing(), -1);
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
