// On which failure ranks agree, and how a suspicion is judged. Tests set the time.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr Deadline begun = Deadline() + 1h;

PublicStateHeader suspicion(Rank suspect, Rank by) {
  PublicStateHeader h;
  h.from = by;
  h.suspect = suspect;
  h.suspected_by = by;
  return h;
}

PublicStateHeader written(const FailureAgreement& v) {
  PublicStateHeader h;
  v.write(h);
  return h;
}

// Judges as a process that runs does: ten times a second.
void judge(FailureAgreement& v, Deadline from, Deadline to) {
  for (Deadline now = from; now < to; now += 100ms) v.judge(now);
  v.judge(to);
}

TEST(FailureAgreement, TheFirstThatIsHeardStays) {
  Parts one(1, 4, 10s);
  PublicStateHeader h;
  h.from = 0;
  EXPECT_FALSE(one.verdict.hear(h, begun));
  EXPECT_FALSE(one.verdict.over());
  for (const Rank r : {2, 3}) {
    h.lost = h.aborted = r;
    EXPECT_EQ(one.verdict.hear(h, begun), r == 2) << "new is the first";
  }
  EXPECT_EQ(one.verdict.lost(), 2);
  EXPECT_EQ(one.verdict.aborted(), 2);
  EXPECT_TRUE(one.verdict.over());
  EXPECT_EQ(written(one.verdict).lost, 2);
}

TEST(FailureAgreement, WhatARankDoesNotHearIsItsSuspicion) {
  Parts two(2, 3, 10s);
  two.detector.asked(0, begun);
  two.verdict.mark_lost(0, begun + 8s);
  EXPECT_EQ(two.verdict.lost(), 0);
  EXPECT_EQ(written(two.verdict).lost, -1);
  EXPECT_EQ(written(two.verdict).suspect, 0);
  EXPECT_EQ(written(two.verdict).suspected_by, 2);
  EXPECT_TRUE(two.queue.owes(1));
}

TEST(FailureAgreement, OfARankThatIsHeardItsWordIsTold) {
  Parts two(2, 3, 10s);
  two.detector.asked(0, begun);
  two.verdict.mark_lost(0, begun + 1s);  // rank 0 may still answer
  EXPECT_EQ(written(two.verdict).lost, 0);
  EXPECT_EQ(written(two.verdict).suspect, -1);
}

TEST(FailureAgreement, WhoHearsTheSuspectTakesTheAccuserForLost) {
  Parts one(1, 3, 10s);
  EXPECT_TRUE(one.verdict.hear(suspicion(0, 2), begun));
  EXPECT_EQ(one.heartbeats.asked(0), 1U);
  one.verdict.judge(begun + 1s);
  EXPECT_EQ(one.verdict.lost(), -1) << "it may still answer";
  EXPECT_TRUE(one.verdict.alive(2, begun + 24h)) << "until its word is judged";
  one.detector.heard(0, 0, begun + 1s);
  one.verdict.judge(begun + 1s);
  EXPECT_EQ(one.verdict.lost(), 2);
  EXPECT_EQ(one.verdict.heard_by_others(), 0);
  EXPECT_EQ(written(one.verdict).lost, 2);
}

TEST(FailureAgreement, AWordThatNobodyRefutesIsBelievedInTime) {
  for (const auto& [timeout, time] : {std::pair{4s, 1000ms}, {100s, 2000ms}}) {
    Parts one(1, 3, timeout);
    one.detector.heard(0, 0, begun - 1s);
    one.verdict.hear(suspicion(0, 2), begun);
    judge(one.verdict, begun, begun + time - 1ms);
    EXPECT_EQ(one.verdict.lost(), -1);
    one.verdict.judge(begun + time);
    EXPECT_EQ(one.verdict.lost(), 0);
    EXPECT_EQ(one.verdict.heard_by_others(), -1);
  }
}

TEST(FailureAgreement, ASuspectThatHearsMostOthersTakesTheAccuserForLost) {
  for (const bool hears : {true, false}) {
    Parts zero(0, 4, 100s);
    zero.verdict.hear(suspicion(0, 3), begun);
    zero.detector.heard(1, 0, begun + 1s);
    if (hears) zero.detector.heard(2, 0, begun + 1s);
    judge(zero.verdict, begun, begun + 2s);
    EXPECT_EQ(zero.verdict.lost(), hears ? 3 : 0);
  }
}

TEST(FailureAgreement, ATimeInWhichThisProcessDidNotRunIsNoAnswer) {
  for (const bool answers : {true, false}) {
    Parts one(1, 3, 100s);
    one.detector.heard(0, 0, begun - 1s);
    one.verdict.hear(suspicion(0, 2), begun);
    judge(one.verdict, begun, begun + 100ms);
    one.verdict.judge(begun + 20s);  // all were suspended
    EXPECT_EQ(one.verdict.lost(), -1) << "the suspect did not run either";
    if (answers) one.detector.heard(0, 0, begun + 20100ms);
    judge(one.verdict, begun + 20100ms, begun + 21300ms);
    EXPECT_EQ(one.verdict.lost(), answers ? 2 : -1);
    judge(one.verdict, begun + 21400ms, begun + 21500ms);
    EXPECT_EQ(one.verdict.lost(), answers ? 2 : 0);
  }
}

TEST(FailureAgreement, ASuspectThatWasSuspendedDoesNotGiveItselfUp) {
  Parts zero(0, 4, 100s);
  zero.verdict.hear(suspicion(0, 3), begun);
  zero.verdict.judge(begun + 20s);
  EXPECT_EQ(zero.verdict.lost(), -1);
  for (const Rank r : {1, 2}) zero.detector.heard(r, 0, begun + 20100ms);
  zero.verdict.judge(begun + 20100ms);
  EXPECT_EQ(zero.verdict.lost(), 3);
}

TEST(FailureAgreement, RailsThatAnyRankHasLeftAreLeft) {
  Parts one(1, 3, 10s);
  for (const int rail : {0, 2}) {
    RailSet left;
    left.add(rail);
    PublicStateHeader h;
    h.from = 0;
    h.rails_left = left.word();
    one.verdict.hear(h, begun);
  }
  EXPECT_TRUE(one.verdict.rails_left().has(0) && one.verdict.rails_left().has(2));
  EXPECT_FALSE(one.verdict.rails_left().has(1));
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
