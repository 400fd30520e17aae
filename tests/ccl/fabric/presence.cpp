// What ranks learn of each other over control, without a fabric.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr ControlPaths with_datagrams{.all = 2, .datagrams = 1};

TEST(Presence, NobodyIsMissingWhenAllHaveJoined) {
  Presence zero = presence_of(0, 2), one = presence_of(1, 2);
  for (Presence* p : {&zero, &one}) p->lock().joining().come();
  tell(one, zero);
  EXPECT_EQ(zero.lock().joining().settle(JoinOutcome::made), JoinOutcome::made);
  tell(zero, one);
  EXPECT_EQ(one.lock().joining().outcome(), JoinOutcome::made);
  EXPECT_EQ(one.lock().joining().missing(), -1);
}

// An eavesdropper can replay a message: to the same rank, to another, and to its sender.
TEST(Presence, AMessageIsHeardOnceAndByItsReceiver) {
  Presence zero = presence_of(0, 3), one = presence_of(1, 3), two = presence_of(2, 3);
  const PublicState first = message(one, 0);
  one.lock().verdict().mark_aborted();
  const PublicState second = message(one, 0);
  for (Presence* p : {&one, &two}) EXPECT_FALSE(p->hear(second, 0));
  EXPECT_EQ(two.verdict().aborted(), -1);
  EXPECT_EQ(two.lock().detector().last_heard(1), Deadline());
  EXPECT_TRUE(zero.hear(second, 0));
  EXPECT_EQ(zero.verdict().aborted(), 1);
  EXPECT_TRUE(zero.hear(first, 0)) << "they may come in any order";
  const Deadline last = zero.lock().detector().last_heard(1);
  for (const PublicState& again : {first, second}) EXPECT_FALSE(zero.hear(again, 0));
  EXPECT_EQ(zero.lock().detector().last_heard(1), last) << "a replay is no sign of life";
}

// A replayed answer to an earlier request must not count as the answer to the next request.
TEST(Presence, AReplayedAnswerAnswersNothing) {
  Presence zero = presence_of(0, 2), one = presence_of(1, 2);
  ask(zero, 1);
  tell(zero, one);
  const PublicState answer = message(one, 0);
  EXPECT_TRUE(zero.hear(answer, 0));
  EXPECT_TRUE(answered(zero, 1, asked(zero, 1)));
  ask(zero, 1);
  EXPECT_FALSE(zero.hear(answer, 0));
  EXPECT_FALSE(answered(zero, 1, asked(zero, 1)));
}

TEST(Presence, AProcessThatRefusesConnectionsTwiceHasEnded) {
  Presence zero = presence_of(0, 2, 10min);
  ask(zero, 1);
  refuse(zero, 1);
  EXPECT_TRUE(alive(zero, 1)) << "a firewall may refuse for a moment";
  EXPECT_TRUE(holds_in_time([&] {
    refuse(zero, 1);
    return !alive(zero, 1);
  }));
  EXPECT_EQ(silence(zero, 1), 0ms) << "it is known to have ended";
}

TEST(Presence, AProcessThatIsHeardHasNotEnded) {
  Presence zero = presence_of(0, 2, 10min), one = presence_of(1, 2);
  ask(zero, 1);
  for (const Deadline end = Clock::now() + 1s; Clock::now() < end; std::this_thread::sleep_for(10ms)) {
    tell(one, zero);
    refuse(zero, 1);
    ASSERT_TRUE(alive(zero, 1));
  }
}

TEST(Presence, WhatIsNotAnsweredIsAskedByDatagramsAndBack) {
  Presence zero = presence_of(0, 2, 10min, with_datagrams), one = presence_of(1, 2, 10min, with_datagrams);
  EXPECT_EQ(zero.lock().queue().path(1), 0);
  ask(zero, 1);
  const auto is_on = [&](int path) {
    return [&zero, path] {
      send_in_vain(zero);
      return zero.lock().queue().path(1) == path;
    };
  };
  EXPECT_TRUE(holds_in_time(is_on(1)));
  tell(zero, one, 1);
  EXPECT_EQ(one.lock().queue().path(0), 1) << "it answers by the way by which it was asked";
  tell(one, zero, 1);
  EXPECT_TRUE(alive(zero, 1));
  EXPECT_TRUE(holds_in_time(is_on(0))) << "datagrams may be lost, so a wire is tried again";
}

// A link of 1 Mb/s carries some 300 messages a second, and each heartbeat takes two: the request and its answer.
TEST(Presence, ARankIsAskedNoFasterThanItAnswers) {
  constexpr auto answers_after = 60ms, apart = 1ms;
  Presence zero = presence_of(0, 2), one = presence_of(1, 2);
  const auto asked_in = [&](auto time) {
    const std::uint32_t before = asked(zero, 1);
    for (const Deadline end = Clock::now() + time; Clock::now() < end; std::this_thread::yield())
      zero.lock().heartbeats().ask_around(Clock::now(), apart);
    return asked(zero, 1) - before;
  };
  zero.lock().heartbeats().ask_around(Clock::now(), apart);
  std::this_thread::sleep_for(answers_after);
  tell(zero, one);
  tell(one, zero);
  EXPECT_LE(asked_in(answers_after), 1U);        // at most one while an answer takes as long
  EXPECT_LE(asked_in(20 * answers_after), 30U);  // no more answers come: requests slow down
  const std::uint32_t before = asked(zero, 1);   // but they do not end
  EXPECT_TRUE(holds_in_time([&] {
    zero.lock().heartbeats().ask_around(Clock::now(), apart);
    return asked(zero, 1) >= before + 3;
  }));
}

TEST(Presence, ARankThatDoesNotAnswerIsLostForItsSilenceAlone) {
  Presence zero = presence_of(0, 2, 400ms);
  ask(zero, 1);
  EXPECT_TRUE(holds_in_time([&] { return !alive(zero, 1); }));
  EXPECT_GE(silence(zero, 1), 300ms);
  EXPECT_FALSE(cut_off(zero)) << "of two, either may be cut off";
}

TEST(Presence, DataThatComeAreASignOfLife) {
  Presence zero = presence_of(0, 2, 400ms);
  std::uint64_t pieces = 0;
  zero.lock().states().set_arrivals([&](Rank) { return RailCounts{pieces}; });
  ask(zero, 1);
  for (const Deadline end = Clock::now() + 1s; Clock::now() < end; ++pieces) ASSERT_TRUE(alive(zero, 1));
  EXPECT_TRUE(holds_in_time([&] { return !alive(zero, 1); }));
}

TEST(Presence, WhoHearsNothingOfMostOthersDoubtsItself) {
  Presence cut = presence_of(2, 3, 400ms), other = presence_of(0, 3, 400ms), third = presence_of(1, 3, 400ms);
  for (const Rank r : {0, 1}) ask(cut, r);
  for (const Rank r : {1, 2}) ask(other, r);
  const auto is_lost = [&] {
    tell(third, other);
    return !alive(cut, 0) && !alive(cut, 1) && !alive(other, 2);
  };
  EXPECT_TRUE(holds_in_time(is_lost));
  EXPECT_TRUE(cut_off(cut));
  tell(third, other);
  EXPECT_FALSE(cut_off(other));
}

// For this time, reports each message that is due as failed with this error, or as sent if the error is 0. Returns the
// number of these messages.
int owed_for(Presence& p, std::chrono::milliseconds time, int error) {
  int count = 0;
  for (const Deadline end = Clock::now() + time; Clock::now() < end; std::this_thread::sleep_for(1ms))
    for (const Rank r : p.take_owed()) {
      const int path = p.lock().queue().path(r);
      p.sending(r, path);
      p.sent(r, path, error);
      ++count;
    }
  return count;
}

// A peer that was killed, or whose answer is lost, must not be connected to for ever.
TEST(Presence, ARetiredOneFallsSilentOnceTheTimeoutHasPassed) {
  for (const int error : {ECONNREFUSED, 0}) {
    Presence zero = presence_of(0, 2, 4s, with_datagrams), one = presence_of(1, 2, 4s, with_datagrams);
    ask(zero, 1);
    int owed = 0;
    EXPECT_TRUE(holds_in_time([&] { return (owed += owed_for(zero, 20ms, error)) > 1; })) << "until it is retired";
    zero.retire();
    EXPECT_TRUE(holds_in_time([&] { return owed_for(zero, 20ms, error) > 0; })) << "who was stopped goes on in time";
    // 1.5 s is longer than the time between two datagrams.
    EXPECT_TRUE(holds_in_time([&] { return owed_for(zero, 1500ms, error) == 0; })) << error;
    ask(one, 0);
    tell(one, zero);
    EXPECT_EQ(zero.take_owed(), std::vector<Rank>{1}) << "who asks is answered";
  }
}

TEST(Presence, ARankThatHasLeftIsNotFailedOverTo) {
  Presence zero = presence_of(0, 2, 10min, with_datagrams), one = presence_of(1, 2, 10min, with_datagrams);
  one.leave();
  tell(one, zero);
  ask(zero, 1);
  owed_for(zero, 100ms, 0);
  EXPECT_EQ(owed_for(zero, 500ms, 0), 0);
  EXPECT_EQ(zero.lock().queue().path(1), 0);
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
