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

PublicState message(Presence& from, Rank to) {
  std::vector<std::byte> bytes;
  bytes.resize(from.write_for(to, 0, 4096, bytes));
  PublicState state;
  EXPECT_TRUE(read_public(bytes, state));
  return state;
}

void tell(Presence& from, Presence& to) { EXPECT_TRUE(to.hear(message(from, to.rank()), 0)); }

TEST(Presence, NobodyIsMissingWhenAllHaveJoined) {
  Presence zero = presence_of(0, 2), one = presence_of(1, 2);
  for (Presence* p : {&zero, &one}) p->come();
  tell(one, zero);
  EXPECT_EQ(zero.settle(Outcome::made), Outcome::made);
  tell(zero, one);
  EXPECT_EQ(one.outcome(), Outcome::made);
  EXPECT_EQ(one.missing(), -1);
}

// Whoever listens can send again what he has heard: to the same rank, to another, and to the one that said it.
TEST(Presence, AMessageIsHeardOnceAndByItsReceiver) {
  Presence zero = presence_of(0, 3), one = presence_of(1, 3), two = presence_of(2, 3);
  const PublicState first = message(one, 0);
  one.mark_aborted();
  const PublicState second = message(one, 0);
  for (Presence* p : {&one, &two}) EXPECT_FALSE(p->hear(second, 0));
  EXPECT_EQ(two.aborted(), -1);
  EXPECT_EQ(two.heard(1), Deadline());
  EXPECT_TRUE(zero.hear(second, 0));
  EXPECT_EQ(zero.aborted(), 1);
  EXPECT_TRUE(zero.hear(first, 0)) << "they may come in any order";
  const Deadline last = zero.heard(1);
  for (const PublicState& again : {first, second}) EXPECT_FALSE(zero.hear(again, 0));
  EXPECT_EQ(zero.heard(1), last) << "a replay is no sign of life";
}

// An answer to an ask that is sent again must not answer the next ask.
TEST(Presence, AReplayedAnswerAnswersNothing) {
  Presence zero = presence_of(0, 2), one = presence_of(1, 2);
  zero.ask(1);
  tell(zero, one);
  const PublicState answer = message(one, 0);
  EXPECT_TRUE(zero.hear(answer, 0));
  EXPECT_TRUE(zero.answered(1, zero.asked(1)));
  zero.ask(1);
  EXPECT_FALSE(zero.hear(answer, 0));
  EXPECT_FALSE(zero.answered(1, zero.asked(1)));
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
