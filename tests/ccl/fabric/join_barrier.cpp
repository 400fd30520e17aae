// Whether all ranks have joined, and which have not.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using Some = std::vector<Rank>;

PublicStateHeader written(const JoinBarrier& b) {
  PublicStateHeader h;
  b.write(h);
  return h;
}

TEST(JoinBarrier, RankZeroTellsWhoIsMissing) {
  Parts zero(0, 3, std::chrono::seconds(10));
  EXPECT_EQ(zero.joining.not_joined(), (Some{0, 1, 2}));
  zero.joining.come();
  EXPECT_TRUE(written(zero.joining).joined);
  zero.take(1, [](PublicStateHeader& h) { h.joined = true; });
  EXPECT_EQ(zero.joining.not_joined(), Some{2});
  EXPECT_EQ(zero.joining.settle(JoinOutcome::dropped), JoinOutcome::dropped);
  EXPECT_EQ(written(zero.joining).missing, 2);
  EXPECT_EQ(written(zero.joining).outcome, JoinOutcome::dropped);
  EXPECT_EQ(zero.joining.settle(JoinOutcome::made), JoinOutcome::dropped) << "the first decision stays";
}

TEST(JoinBarrier, ARankThatGivesUpMakesRankZeroDropIt) {
  Parts zero(0, 2, std::chrono::seconds(10)), one(1, 2, std::chrono::seconds(10));
  one.joining.give_up();
  EXPECT_TRUE(one.queue.owes(0));
  zero.joining.hear(written(one.joining));
  EXPECT_EQ(zero.joining.outcome(), JoinOutcome::dropped);
  EXPECT_EQ(zero.joining.missing(), 0);
  EXPECT_TRUE(one.joining.hear(written(zero.joining)));
  EXPECT_FALSE(one.joining.hear(written(zero.joining))) << "nothing new";
  EXPECT_EQ(one.joining.outcome(), JoinOutcome::dropped);
  EXPECT_EQ(one.joining.missing(), 0);
}

TEST(JoinBarrier, InALargeCommunicatorARankHasJoinedWhenThoseBehindItHave) {
  Parts two(2, 64, std::chrono::seconds(10));  // in the tree of joins, rank 3 is its only child
  two.joining.come();
  EXPECT_EQ(two.joining.not_joined(), Some{3});
  EXPECT_FALSE(written(two.joining).joined);
  EXPECT_EQ(written(two.joining).absent, 3);
  two.take(3, [](PublicStateHeader& h) { h.joined = true; });
  EXPECT_EQ(two.joining.not_joined(), Some{});
  EXPECT_TRUE(written(two.joining).joined);
  EXPECT_EQ(written(two.joining).absent, -1);
  EXPECT_TRUE(two.queue.owes(0));
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
