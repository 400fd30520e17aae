// Every proved schedule can run over FIFO queues, in the order that `queued` finds.
#include "schedule/proof/fifo_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/formats/text.h"
#include "schedule/proof/verify.h"
#include "schedule/stage_unreadable_buffers.h"
#include "tests/schedule/against_order.h"
#include "tests/schedule/buffers.h"
#include "tests/schedule/requests.h"
#include "tests/schedule/scramble.h"

namespace trellis::schedule {
namespace {

bool is_permutation(std::vector<std::int32_t> numbers) {
  std::ranges::sort(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != static_cast<std::int32_t>(i)) return false;
  return true;
}

// Each step does what its original step does, apart from new step numbers and tags.
void expect_same_steps(const Schedule& before, const FifoOrderedSchedule& after) {
  for (Rank r = 0; r < before.ranks(); ++r) {
    const Program &old = before.programs[r], &now = after.schedule.programs[r];
    ASSERT_EQ(old.steps.size(), now.steps.size());
    ASSERT_TRUE(is_permutation(after.origins[r]));
    for (std::size_t i = 0; i < now.steps.size(); ++i) {
      const Step &a = old.steps[after.origins[r][i]], &b = now.steps[i];
      EXPECT_EQ(a.op, b.op);
      EXPECT_EQ(a.to, b.to);
      EXPECT_EQ(a.from, b.from);
      EXPECT_EQ(a.end.peer, b.end.peer);
      EXPECT_EQ(a.second.peer, b.second.peer);
      EXPECT_EQ(a.after.count, b.after.count);
      EXPECT_TRUE(std::ranges::equal(old.further(a), now.further(b)));
    }
  }
}

TEST(Queues, TagsAgainstTheWaitsAreNumberedAnew) {
  const Schedule s = parse(against_tags);
  ASSERT_TRUE(verify(s).ok()) << verify(s).text();
  EXPECT_FALSE(passes_in_order(s, 4));
  const FifoOrderedSchedule q = queued(s, 4);
  EXPECT_TRUE(passes_in_order(q.schedule, 4));
  EXPECT_EQ(q.schedule.programs[1].steps[0].from.first, 1);
  EXPECT_EQ(q.schedule.programs[1].steps[0].end.tag, 0);
  EXPECT_EQ(q.origins[0], (std::vector<std::int32_t>{1, 0}));
}

TEST(Queues, TheOrderOfTheListAloneIsNoReason) {
  std::string text(against_tags);
  text.erase(text.find(" after 0"), 8);
  const FifoOrderedSchedule q = queued(parse(text), 1);
  EXPECT_TRUE(passes_in_order(parse(text), 1));
  EXPECT_EQ(q.schedule.programs[1].steps[0].from.first, 0);  // tags keep their order where possible
}

TEST(Queues, TwoChannelsThatShareOne) {
  std::string text(against_tags);
  text.replace(text.find("channels 1"), 10, "channels 2");
  for (std::size_t at = 0; (at = text.find("tag 1", at)) != std::string::npos;) text.replace(at, 5, "tag 0 channel 1");
  const Schedule s = parse(text);
  EXPECT_TRUE(passes_in_order(s, 2));
  EXPECT_FALSE(passes_in_order(s, 1));
  const FifoOrderedSchedule q = queued(s, 1);
  EXPECT_EQ(q.schedule.channels, 1);
  EXPECT_TRUE(passes_in_order(q.schedule, 1));
  EXPECT_TRUE(verify(q.schedule).ok()) << verify(q.schedule).text();
}

TEST(Queues, NoneForStepsThatNeverStart) {
  Schedule s = parse(against_tags);
  Program& zero = s.programs[0];
  for (Step& step : zero.steps) step.end.tag ^= 1;
  zero.set_after(zero.steps[1], std::vector<std::int32_t>{0});
  s.programs[1].steps[0].end.tag = 0, s.programs[1].steps[1].end.tag = 1;
  EXPECT_FALSE(verify(s).ok());
  EXPECT_THROW(queued(s, 1), std::invalid_argument);
}

TEST(Queues, EveryAlgorithmNumbersInOrderForItsOwnChannels) {
  each_case(8, [](const Case& c) {
    const Schedule s = make(*c.algorithm, c.request);
    EXPECT_TRUE(passes_in_order(s, s.channels)) << c.text();
  });
}

TEST(Queues, WhateverIsProvedPassesHoweverItIsWritten) {
  std::mt19937 random(5);
  int against = 0, cases = 0;
  each_case(6, [&](const Case& c) {
    if (++cases % 3 != 0) return;
    const Schedule made = make(*c.algorithm, c.request);
    if (made.steps() > 600) return;
    const Schedule s = scrambled(made, random);
    const Report report = verify(s);
    ASSERT_TRUE(report.ok()) << c.text() << ": " << report.text() << "\n" << print(s);
    const int queues = 1 + static_cast<int>(random() % 4);
    against += passes_in_order(s, queues) ? 0 : 1;
    const FifoOrderedSchedule q = queued(s, queues);
    expect_same_steps(s, q);
    ASSERT_TRUE(passes_in_order(q.schedule, queues)) << c.text();
    const Report again = verify(q.schedule);
    ASSERT_TRUE(again.ok()) << c.text() << ": " << again.text();
    EXPECT_EQ(report.same_bits_everywhere, again.same_bits_everywhere);
    // With any buffers unreadable on any rank, it still runs in order and is right.
    Schedule concealed = q.schedule;
    for (Rank r = 0; r < s.ranks(); ++r)
      concealed.programs[r] = stage_unreadable_buffers(s.task, r, q.schedule.programs[r],
                                                       {.input = random() % 2 == 0, .output = random() % 2 == 0})
                                  .program;
    EXPECT_TRUE(passes_in_order(concealed, queues)) << c.text();
    EXPECT_TRUE(verify(concealed).ok()) << c.text() << ": " << verify(concealed).text();
    EXPECT_EQ(run_on_buffers(q.schedule, random), "") << c.text();
  });
  EXPECT_GT(against, 100);
}

}  // namespace
}  // namespace trellis::schedule
