// Which rank is believed when one says that it hears nothing of another.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ccl/transports/libfabric/control/message_authenticator.h"
#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto soon = 400ms;  // a timeout that passes
constexpr auto far = 10min;   // and one that does not

// The requests of `cut` to rank 0 get no answer, so it takes rank 0 for lost.
void cut_off_from_zero(Presence& cut) {
  ask(cut, 0);
  EXPECT_TRUE(holds_in_time([&] { return !alive(cut, 0); }));
  mark_lost(cut, 0);
  EXPECT_EQ(cut.verdict().lost(), 0);
}

// Sends the messages that are due and judges suspicions, as ControlLink does in each pass of its loop. Returns the rank
// that is lost; -1: none.
Rank judged(Presence& p) {
  send_in_vain(p);
  return p.verdict().lost();
}

TEST(Believing, WhoHearsTheSuspectTakesTheOneThatDoesNotForLost) {
  Presence cut = presence_of(2, 3, soon), zero = presence_of(0, 3, far), one = presence_of(1, 3, far);
  cut_off_from_zero(cut);
  tell(zero, one);
  for (Presence* p : {&zero, &one}) tell(cut, *p);
  for (Presence* p : {&zero, &one}) EXPECT_EQ(judged(*p), -1) << "it is asked first";
  tell(one, zero);
  tell(zero, one);
  for (Presence* p : {&zero, &one}) {
    EXPECT_EQ(judged(*p), 2) << p->roster().rank();
    EXPECT_EQ(p->verdict().heard_by_others(), 0);
  }
}

TEST(Believing, TheJudgementOfOneIsThatOfAll) {
  Presence cut = presence_of(2, 3, soon), zero = presence_of(0, 3, far), one = presence_of(1, 3, far);
  cut_off_from_zero(cut);
  tell(cut, one);
  tell(zero, one);
  EXPECT_EQ(judged(one), 2);
  tell(one, zero);
  EXPECT_EQ(zero.verdict().lost(), 2);
  tell(cut, zero);
  EXPECT_EQ(judged(zero), 2);
}

TEST(Believing, AWordThatNobodyRefutesIsBelieved) {
  Presence cut = presence_of(2, 3, soon), one = presence_of(1, 3, soon);
  cut_off_from_zero(cut);
  tell(cut, one);
  EXPECT_TRUE(holds_in_time([&] { return judged(one) == 0; })) << "it has not answered in time";

  Presence ended = presence_of(1, 3, far);
  ask(ended, 0);
  EXPECT_TRUE(holds_in_time([&] {
    refuse(ended, 0);
    return !alive(ended, 0);
  }));
  tell(cut, ended);
  EXPECT_EQ(judged(ended), 0) << "it is known to have ended here, too";
}

// A stopped process exists, but answers nobody: a rank on another host that reports it is right.
TEST(Believing, AStoppedProcessOfThisHostIsNotHeard) {
  const pid_t stopped = fork();
  if (stopped == 0)
    for (;;) pause();
  kill(stopped, SIGSTOP);
  EXPECT_EQ(waitpid(stopped, nullptr, WUNTRACED), stopped);
  Presence cut = presence_of(2, 3, soon);
  std::vector<Member> members = {
      {.host = "h0", .home = "b0", .process = stopped}, {.host = "h0", .home = "b0"}, {.host = "h2", .home = "b2"}};
  Presence one(Roster(7, 1, {0, 1, 2}, std::move(members)), soon, {});
  cut_off_from_zero(cut);
  tell(cut, one);
  Rank lost = -1;
  EXPECT_TRUE(holds_in_time([&] { return (lost = judged(one)) >= 0; }));
  EXPECT_EQ(lost, 0);
  kill(stopped, SIGKILL);
  waitpid(stopped, nullptr, 0);
}

TEST(Believing, OfTwoNobodyElseCanJudge) {
  Presence zero = presence_of(0, 2, soon), one = presence_of(1, 2, soon);
  cut_off_from_zero(one);
  tell(one, zero);
  EXPECT_TRUE(holds_in_time([&] { return judged(zero) == 0; }));
}

// Rank 2, which hears rank 0, reports it for not coming to the operation. The others hear rank 0, too, but that does
// not contradict the report: they believe it at once.
TEST(Believing, TheWordOfWhoHearsARankIsBelievedAtOnce) {
  Presence zero = presence_of(0, 3, far), one = presence_of(1, 3, far), two = presence_of(2, 3, far);
  tell(zero, two);
  mark_lost(two, 0);
  tell(two, one);
  EXPECT_EQ(one.verdict().lost(), 0);
}

// The rank that reports a loss may leave before the others have decided whom to believe.
TEST(Believing, WhoseWordIsJudgedIsNotBlamedForLeaving) {
  Presence cut = presence_of(2, 3, soon), one = presence_of(1, 3, soon);
  cut_off_from_zero(cut);
  tell(cut, one);
  cut.leave();
  tell(cut, one);
  EXPECT_TRUE(alive(one, 2));
  EXPECT_TRUE(holds_in_time([&] { return judged(one) == 0; }));
  EXPECT_FALSE(alive(one, 2));
}

TEST(Believing, WhatIsNotSealedByTheJobIsNotHeard) {
  const CommunicatorNonce origin{.identity = 7};
  const MessageAuthenticator ours("secret", origin), theirs("another", origin);
  Presence zero = presence_of(0, 3, soon), one = presence_of(1, 3, soon);
  std::vector<std::byte> body;
  body.resize(one.write_for(0, 0, 4096, body));
  // Takes a datagram as ControlLink does: opens its seal, and then reads the message.
  const auto take = [&](const MessageAuthenticator& by, std::size_t changed) {
    std::vector<std::byte> datagram(sizeof(MessageAuthenticator::Head));
    datagram.insert(datagram.end(), body.begin(), body.end());
    by.close(datagram);
    if (changed != 0) datagram[changed] ^= std::byte{1};
    PublicState s;
    const auto told = ours.open(datagram);
    return !told.empty() && read_public(told, s) && zero.hear(s, 0);
  };
  for (const Rank r : {1, 2}) ask(zero, r);
  EXPECT_TRUE(holds_in_time([&] {
    EXPECT_FALSE(take(theirs, 0));
    EXPECT_FALSE(take(ours, sizeof(MessageAuthenticator::Head) + 9));
    return cut_off(zero);
  })) << "what is refused is no sign of life";
  EXPECT_TRUE(take(ours, 0));
  EXPECT_FALSE(cut_off(zero)) << "of the other two, one is heard";
}

// Messages that fail show that a rank is cut off, long before half of the timeout has passed.
TEST(Believing, WhoCanReachNobodyIsCutOff) {
  Presence zero = presence_of(0, 3, far);
  for (const Rank r : {1, 2}) ask(zero, r);
  EXPECT_TRUE(holds_in_time([&] {
    for (const Rank r : {1, 2}) zero.sent(r, 0, ENETUNREACH);
    return !alive(zero, 1) && !alive(zero, 2);
  }));
  EXPECT_TRUE(cut_off(zero));
}

TEST(Leaving, IsToldUntilItIsHeard) {
  Presence zero = presence_of(0, 2, far), one = presence_of(1, 2, far);
  EXPECT_FALSE(zero.has_to_tell());
  zero.leave();
  send_in_vain(zero);
  EXPECT_TRUE(zero.has_to_tell()) << "it may be lost";
  tell(one, zero);
  EXPECT_TRUE(zero.has_to_tell()) << "what comes is no answer to it";
  tell(zero, one);
  send_in_vain(zero);
  EXPECT_TRUE(one.lock().states().left(0));
  tell(one, zero);
  EXPECT_FALSE(zero.has_to_tell());
}

TEST(Leaving, WaitsForNobodyWhoHasLeftOrIsGone) {
  Presence zero = presence_of(0, 3, soon), one = presence_of(1, 3, far);
  zero.leave();
  send_in_vain(zero);
  one.leave();
  tell(one, zero);
  EXPECT_TRUE(zero.has_to_tell()) << "rank 2 has not answered";
  EXPECT_TRUE(holds_in_time([&] {
    send_in_vain(zero);
    return !zero.has_to_tell();
  }));
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
