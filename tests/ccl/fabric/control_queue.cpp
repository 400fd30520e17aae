// Which rank the next message goes to, and over which path. Tests set the time.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr Deadline begun = Deadline() + 1h;
constexpr ControlPaths with_datagrams{.all = 2, .datagrams = 1};
using Some = std::vector<Rank>;

TEST(ControlQueue, EachRankIsOwedOnce) {
  ControlQueue q(0, 3, {}, 10s);
  for (const Rank r : {2, 0, 2}) q.owe(r);
  EXPECT_TRUE(q.owes(2));
  EXPECT_EQ(q.take(begun), Some{2}) << "and not this one";
  EXPECT_EQ(q.take(begun), Some{});
  q.owe_all();
  EXPECT_EQ(q.take(begun), (Some{1, 2}));
}

TEST(ControlQueue, OneMessageIsUnderWayAtATime) {
  ControlQueue q(0, 2, {}, 10s);
  q.sending(1, 0, begun);
  EXPECT_TRUE(q.under_way(1));
  q.owe(1);
  EXPECT_EQ(q.take(begun), Some{});
  q.sent(1, 0, true, begun);
  EXPECT_EQ(q.take(begun), Some{1});
  q.put_off(1);
  EXPECT_TRUE(q.owes(1));
}

TEST(ControlQueue, WhatFailsGoesLaterOverTheNextPath) {
  ControlQueue q(0, 2, with_datagrams, 10s);
  q.sending(1, 0, begun);
  q.sent(1, 0, false, begun);
  EXPECT_EQ(q.path(1), 1);
  q.owe(1);
  EXPECT_EQ(q.take(begun + 19ms), Some{});
  EXPECT_EQ(q.take(begun + 20ms), Some{1});
}

TEST(ControlQueue, FailsOverWhereNothingComesBackAndReturnsToAWire) {
  ControlQueue q(0, 2, with_datagrams, 10min);
  const auto turned = [&](Deadline unanswered, Deadline now) {
    const auto all = q.fail_over([&](Rank r) { return r == 1 ? unanswered : Deadline(); }, now);
    return all.size() == 1 && all.front().rank == 1;
  };
  EXPECT_EQ(q.longest_silence(), 200ms);
  EXPECT_FALSE(turned(begun, begun + 199ms));
  EXPECT_FALSE(turned(begun, begun + 218ms)) << "it looks every 20 ms";
  EXPECT_TRUE(turned(begun, begun + 219ms));
  EXPECT_EQ(q.path(1), 1);
  EXPECT_EQ(q.take(begun + 219ms), Some{1});
  EXPECT_FALSE(turned({}, begun + 2s));
  EXPECT_EQ(q.path(1), 1);
  EXPECT_FALSE(turned({}, begun + 2219ms));
  EXPECT_EQ(q.path(1), 0);
}

TEST(ControlQueue, AMessageThatStaysUnderWayCountsAsLost) {
  ControlQueue q(0, 2, {.all = 2}, 10min);
  q.sending(1, 0, begun);
  const auto turned = q.fail_over([](Rank) { return Deadline(); }, begun + 200ms);
  ASSERT_EQ(turned.size(), 1U);
  EXPECT_TRUE(turned.front().lost);
  EXPECT_EQ(q.path(1), 1);
  EXPECT_EQ(q.take(begun + 200ms), Some{1}) << "nothing is under way over the new path";
}

TEST(ControlQueue, FollowsThePathOverWhichARankWasHeard) {
  ControlQueue q(0, 2, with_datagrams, 10s);
  q.heard(1, 1, begun);
  EXPECT_EQ(q.path(1), 1);
  q.begin_on(1, 0);
  EXPECT_EQ(q.path(1), 0);
}

TEST(ControlQueue, ALargeCommunicatorIsToldByNeighboursAndThoseThatWereHeard) {
  ControlQueue q(0, 64, {}, 10s);
  const std::size_t neighbours = q.gossip().neighbours().size();
  q.owe_all();
  EXPECT_EQ(q.take(begun).size(), neighbours);
  q.heard(21, 0, begun);
  q.owe_all();
  EXPECT_EQ(q.take(begun).size(), neighbours + 1);
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
