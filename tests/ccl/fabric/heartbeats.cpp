// How often ranks are asked for their state, and what counts as an answer. Tests set the time.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr Deadline begun = Deadline() + 1h;

// The head of a message between this rank and another.
PublicStateHeader head(Rank from, Rank to) {
  PublicStateHeader h;
  h.from = from;
  h.to = to;
  return h;
}

PublicStateHeader written(const Heartbeats& beats, Rank to) {
  PublicStateHeader h = head(0, to);
  beats.write(h);
  return h;
}

TEST(Heartbeats, AnAskIsWrittenUntilItIsUnderWayAndAgainIfItIsLost) {
  Parts zero(0, 2, 10s);
  zero.heartbeats.ask(1, begun);
  EXPECT_TRUE(zero.queue.owes(1));
  EXPECT_EQ(zero.detector.unanswered(1), begun);
  EXPECT_EQ(written(zero.heartbeats, 1).asks, 1U);
  EXPECT_EQ(written(zero.heartbeats, 1).asks, 1U);
  zero.heartbeats.sending(1);
  EXPECT_EQ(written(zero.heartbeats, 1).asks, 0U);
  zero.heartbeats.repeat(1);
  EXPECT_EQ(written(zero.heartbeats, 1).asks, 1U);
  zero.heartbeats.sending(1);
  zero.detector.heard(1, 0, begun);
  zero.heartbeats.repeat(1);
  EXPECT_EQ(written(zero.heartbeats, 1).asks, 0U) << "it was heard meanwhile";
}

TEST(Heartbeats, AnAnswerIsThatToTheLastAsk) {
  Parts zero(0, 2, 10s);
  zero.heartbeats.ask(1, begun);
  zero.heartbeats.ask(1, begun);
  PublicStateHeader h = head(1, 0);
  h.answers = 1;
  zero.heartbeats.hear(h, begun);
  EXPECT_TRUE(zero.heartbeats.answered(1, 1));
  EXPECT_FALSE(zero.heartbeats.answered(1, zero.heartbeats.asked(1)));
  h.answers = 2;
  zero.heartbeats.hear(h, begun);
  EXPECT_TRUE(zero.heartbeats.answered(1, 2));
}

TEST(Heartbeats, WhoIsAskedOwesAnAnswer) {
  Parts zero(0, 2, 10s);
  PublicStateHeader h = head(1, 0);
  zero.heartbeats.hear(h, begun);
  EXPECT_FALSE(zero.queue.owes(1));
  h.asks = 5;
  zero.heartbeats.hear(h, begun);
  EXPECT_TRUE(zero.queue.owes(1));
  EXPECT_EQ(written(zero.heartbeats, 1).answers, 5U);
}

// How often rank 1 is asked in that time by a rank that checks each millisecond.
std::uint32_t asked_in(Parts& parts, Deadline from, std::chrono::milliseconds time) {
  const std::uint32_t before = parts.heartbeats.asked(1);
  for (auto at = 0ms; at < time; at += 1ms) parts.heartbeats.ask_around(from + at, 40ms);
  return parts.heartbeats.asked(1) - before;
}

TEST(Heartbeats, NoRankIsAskedFasterThanItAnswers) {
  Parts zero(0, 2, 10s);
  EXPECT_EQ(asked_in(zero, begun, 200ms), 5U);
  PublicStateHeader h = head(1, 0);
  h.answers = zero.heartbeats.asked(1);
  zero.heartbeats.hear(h, begun + 200ms);  // its answer took 200 ms
  zero.detector.heard(1, 0, begun + 200ms);
  EXPECT_EQ(asked_in(zero, begun + 200ms, 1200ms), 3U);
}

TEST(Heartbeats, ARankThatDoesNotAnswerIsAskedSixteenTimesInTheTimeout) {
  Parts zero(0, 2, 10s);
  asked_in(zero, begun, 10s);
  EXPECT_EQ(asked_in(zero, begun + 10s, 10s), 16U);
  zero.take(1, [](PublicStateHeader& h) { h.left = true; });
  EXPECT_EQ(asked_in(zero, begun + 20s, 10s), 0U);
}

TEST(Heartbeats, ARankOfALargeCommunicatorAsksTheNextAndTheOneItWaitsFor) {
  Parts zero(0, 64, 10s);
  zero.states.change([](PublicState& s) { s.head.activity.waits_for = 21; });
  zero.heartbeats.ask_around(begun, 40ms);
  EXPECT_EQ(zero.queue.take(begun), (std::vector<Rank>{21, 1}));
  zero.heartbeats.ask_around(begun + 3s, 40ms);
  EXPECT_GT(zero.queue.take(begun + 3s).size(), 2U) << "who does not hear those asks its neighbours, too";
}

TEST(Heartbeats, ASurveyCountsThoseWhoTookPartOrHaveLeft) {
  Parts zero(0, 64, 10s);
  const std::uint32_t survey = zero.heartbeats.begin_survey();
  EXPECT_EQ(written(zero.heartbeats, 1).survey, survey);
  EXPECT_TRUE(zero.heartbeats.surveyed(0, survey));
  zero.take(1, [&](PublicStateHeader& h) { h.survey = survey; });
  zero.take(2, [](PublicStateHeader& h) { h.left = true; });
  for (const Rank r : {1, 2, 3}) EXPECT_EQ(zero.heartbeats.surveyed(r, survey), r != 3) << r;
  PublicStateHeader h = head(1, 0);
  h.survey = survey + 4;
  zero.heartbeats.hear(h, begun);
  EXPECT_TRUE(zero.heartbeats.surveyed(0, survey + 4)) << "it takes part in that of another";
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
