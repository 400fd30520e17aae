// Which ranks have failed, by what was heard of them and when. Tests set the time.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr Deadline begun = Deadline() + 1h;

// Calls look() every 100 ms, as a rank does that is never paused.
void run(Parts& p, std::chrono::milliseconds from, std::chrono::milliseconds until) {
  for (auto at = from; at <= until; at += 100ms) p.detector.look(begun + at);
}

TEST(FailureDetector, ARankThatIsNotAskedOwesNoAnswer) {
  Parts zero(0, 2, 10s);
  EXPECT_TRUE(zero.detector.answers(1, begun + 24h));
  EXPECT_EQ(zero.detector.silence(1, begun + 24h), 0ms);
}

TEST(FailureDetector, AnAnswerIsAwaitedForThreeQuartersOfTheTimeout) {
  Parts zero(0, 2, 10s);
  zero.detector.asked(1, begun);
  zero.detector.asked(1, begun + 7s);  // time runs from the first request
  EXPECT_TRUE(zero.detector.answers(1, begun + 7499ms));
  EXPECT_FALSE(zero.detector.answers(1, begun + 7500ms));
  EXPECT_EQ(zero.detector.silence(1, begun + 8s), 8s);
  zero.detector.heard(1, 0, begun + 8s);
  EXPECT_TRUE(zero.detector.answers(1, begun + 24h));
  EXPECT_EQ(zero.detector.unanswered(1), Deadline());
  EXPECT_EQ(zero.detector.last_heard(1), begun + 8s);
}

TEST(FailureDetector, DataThatComeAreASignOfLife) {
  Parts zero(0, 2, 10s);
  std::uint64_t pieces = 0;
  zero.states.set_arrivals([&](Rank) { return RailCounts{pieces}; });
  zero.detector.asked(1, begun);
  ++pieces;
  EXPECT_TRUE(zero.detector.answers(1, begun + 7s));
  run(zero, 7s, 14s);
  EXPECT_TRUE(zero.detector.answers(1, begun + 14s));
  EXPECT_FALSE(zero.detector.answers(1, begun + 14500ms));
}

TEST(FailureDetector, DataThatAreNotTakenMeanAsMuchAsSilenceWhileARankRuns) {
  Parts zero(0, 2, 10s);
  zero.detector.set_stuck(1, begun);
  EXPECT_TRUE(zero.detector.answers(1, begun + 9s)) << "it is at rest";
  zero.take(1, [](PublicStateHeader& h) { h.activity.running = true; });
  EXPECT_TRUE(zero.detector.answers(1, begun + 7s));
  EXPECT_FALSE(zero.detector.answers(1, begun + 8s));
  zero.detector.set_stuck(1, {});
  EXPECT_TRUE(zero.detector.answers(1, begun + 9s));
}

TEST(FailureDetector, ARankIsOutOfReachWhenMessagesFailOverEveryPath) {
  Parts zero(0, 2, 10min, {.all = 2});
  zero.detector.sent(1, 0, false, begun);
  EXPECT_TRUE(zero.detector.reachable(1, begun + 1h)) << "by the other path";
  zero.detector.sent(1, 1, false, begun + 1s);
  EXPECT_TRUE(zero.detector.reachable(1, begun + 1300ms));
  EXPECT_FALSE(zero.detector.reachable(1, begun + 1301ms));
  EXPECT_FALSE(zero.detector.answers(1, begun + 1301ms));
  zero.detector.heard(1, 1, begun + 2s);
  EXPECT_TRUE(zero.detector.reachable(1, begun + 1h));
  zero.detector.sent(1, 1, false, begun + 3s);
  EXPECT_TRUE(zero.detector.reachable(1, begun + 1h)) << "over the first they failed before it was heard";
}

TEST(FailureDetector, ARankThatWasNeverHeardIsSilentSinceItIsOutOfReach) {
  Parts zero(0, 2, 10min, {.all = 2});
  zero.detector.sent(1, 1, false, begun);
  zero.detector.sent(1, 0, false, begun + 1s);
  EXPECT_EQ(zero.detector.silence(1, begun + 1200ms), 0ms);
  EXPECT_EQ(zero.detector.silence(1, begun + 3s), 2s);
  for (const int path : {0, 1}) {
    zero.detector.heard(1, path, begun + 4s);
    zero.detector.sent(1, path, false, begun + 5s);
  }
  EXPECT_EQ(zero.detector.silence(1, begun + 6s), 2s);
}

TEST(FailureDetector, AProcessThatRefusesConnectionsForAWhileHasEnded) {
  Parts zero(0, 2, 10s);
  zero.detector.asked(1, begun);
  zero.detector.refused(1, begun);
  zero.detector.refused(1, begun + 199ms);
  EXPECT_TRUE(zero.detector.answers(1, begun + 1s)) << "a firewall may refuse for a moment";
  zero.detector.refused(1, begun + 200ms);
  EXPECT_FALSE(zero.detector.answers(1, begun + 1s));
  EXPECT_EQ(zero.detector.silence(1, begun + 1s), 0ms) << "it is known to have ended";
  zero.detector.heard(1, 0, begun + 2s);
  EXPECT_TRUE(zero.detector.answers(1, begun + 2s));
}

// All ranks of a job may be stopped and continued: the others' answers come once they run again.
TEST(FailureDetector, APauseOfThisProcessIsNobodysSilence) {
  Parts zero(0, 2, 10s);
  run(zero, 0s, 1s);
  zero.detector.asked(1, begun);
  EXPECT_TRUE(zero.detector.answers(1, begun + 20s));
  EXPECT_EQ(zero.detector.silence(1, begun + 20s), 1s);
  run(zero, 20s, 26s);
  EXPECT_TRUE(zero.detector.answers(1, begun + 26499ms));
  EXPECT_FALSE(zero.detector.answers(1, begun + 26500ms)) << "it had as much time as ever";
}

TEST(FailureDetector, APauseOfThisProcessIsNobodysFailure) {
  Parts zero(0, 2, 10s, {.all = 2});
  zero.detector.heard(1, 0, begun + 500ms);
  for (const int path : {0, 1}) zero.detector.sent(1, path, false, begun + 900ms);
  zero.detector.refused(1, begun + 900ms);
  zero.detector.look(begun + 1s);
  zero.detector.refused(1, begun + 20s);  // of a connection that was begun before the pause
  EXPECT_TRUE(zero.detector.answers(1, begun + 20s));
  zero.take(1, [](PublicStateHeader& h) { h.activity.running = true; });
  zero.detector.set_stuck(1, begun + 20s);
  EXPECT_TRUE(zero.detector.reachable(1, begun + 20200ms));
  EXPECT_FALSE(zero.detector.reachable(1, begun + 20300ms));
  zero.detector.heard(1, 0, begun + 20300ms);
  EXPECT_TRUE(zero.detector.answers(1, begun + 40s)) << "it may take data by now";
}

TEST(FailureDetector, WhoHearsNothingOfMostOthersIsCutOff) {
  Parts zero(0, 5, 10s);
  for (const Rank r : {1, 2, 3, 4}) zero.detector.asked(r, begun);
  for (const Rank r : {3, 4}) zero.detector.heard(r, 0, begun + 1s);
  EXPECT_FALSE(zero.detector.cut_off(begun + 5s)) << "two of four are silent";
  zero.detector.asked(3, begun + 1s);
  EXPECT_TRUE(zero.detector.cut_off(begun + 6s));
  for (const Rank r : {1, 2}) zero.take(r, [](PublicStateHeader& h) { h.left = true; });
  EXPECT_FALSE(zero.detector.cut_off(begun + 6s)) << "who has left counts on neither side";
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
