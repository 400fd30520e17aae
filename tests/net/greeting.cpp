// Greetings without connections: who is let in, and what proves nothing.
#include "net/greeting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace trellis::net {
namespace {

constexpr Greeting protocol = {.magic = "trellis0", .label = "trellis test", .terms = 3};
constexpr Greeting other_protocol = {.magic = "trellis0", .label = "trellis other", .terms = 3};
const Bytes terms = {std::byte{1}, std::byte{2}, std::byte{3}};

GreetingCaller calling(std::string_view secret = "secret") { return {protocol, secret, terms}; }

// The listener's answer to a hello.
Bytes answer_to(GreetingListener& w, std::span<const std::byte> hello, std::string_view secret = "secret") {
  w.take(hello);
  EXPECT_TRUE(w.expects_answer());
  return w.answer(secret);
}

std::span<const std::byte, answer_bytes> whole(const Bytes& answer) { return std::span(answer).first<answer_bytes>(); }

Verdict verdict_on(const GreetingCaller& c) {
  GreetingListener listener(protocol);
  try {
    answer_to(listener, c.hello());
  } catch (const ProtocolError& why) {
    return why.verdict;
  }
  return Verdict::welcome;
}

TEST(Greeting, ProvesBothEndsToEachOther) {
  GreetingListener listener(protocol);
  GreetingCaller caller = calling();
  for (const std::byte b : caller.hello()) {  // however it is cut
    EXPECT_FALSE(listener.expects_answer());
    listener.take({&b, 1});
  }
  EXPECT_TRUE(std::ranges::equal(listener.terms(), terms));
  const Bytes answer = listener.answer("secret");
  ASSERT_EQ(answer.size(), answer_bytes);
  EXPECT_TRUE(listener.greeted());
  EXPECT_FALSE(listener.proven()) << "a hello can be a repetition";
  listener.take(caller.proof(whole(answer)));
  EXPECT_TRUE(listener.proven());
  EXPECT_EQ(listener.wanted(), 0U) << "what follows is the caller's";
  EXPECT_TRUE(std::ranges::equal(listener.terms(), terms));
  for (const Side side : {Side::caller, Side::listener})
    EXPECT_EQ(listener.transcript().key(side), caller.transcript().key(side));
  EXPECT_NE(caller.transcript().key(Side::caller), caller.transcript().key(Side::listener));
}

TEST(Greeting, AnotherSecretIsRefusedByBoth) {
  EXPECT_EQ(verdict_on(calling()), Verdict::welcome);
  EXPECT_EQ(verdict_on(calling("guess")), Verdict::other_secret);
  GreetingListener with_guess(protocol);
  const Bytes answer = answer_to(with_guess, calling("guess").hello(), "guess");
  EXPECT_THROW(calling().proof(whole(answer)), ProtocolError);
}

TEST(Greeting, AnotherProtocolsHelloIsRefused) {
  EXPECT_EQ(verdict_on(GreetingCaller(other_protocol, "secret", terms)), Verdict::other_secret);
}

TEST(Greeting, ARefusalIsTheCallersToo) {
  std::array<std::byte, answer_bytes> refusal = {static_cast<std::byte>(Verdict::gone)};
  try {
    calling().proof(refusal);
    ADD_FAILURE() << "it was taken for a welcome";
  } catch (const ProtocolError& why) {
    EXPECT_EQ(why.verdict, Verdict::gone);
  }
}

TEST(Greeting, AHelloThatIsChangedOrRepeatedProvesNothing) {
  GreetingCaller caller = calling();
  for (std::size_t i = 0; i < caller.hello().size(); ++i) {
    Bytes changed = caller.hello();
    changed[i] ^= std::byte{1};
    GreetingListener listener(protocol);
    EXPECT_THROW(answer_to(listener, changed), ProtocolError) << "byte " << i;
  }
  GreetingListener first(protocol), again(protocol), reflected(protocol);
  const Bytes answer = answer_to(first, caller.hello());
  answer_to(again, caller.hello());
  EXPECT_THROW(again.take(caller.proof(whole(answer))), ProtocolError) << "the proof was for another connection";
  const Bytes mine = answer_to(reflected, caller.hello());
  EXPECT_THROW(reflected.take(std::span(mine).last(proof_bytes)), ProtocolError) << "the listener's own proof";
}

TEST(Greeting, AStrangerIsRefusedAtItsFirstWrongByte) {
  GreetingListener listener(protocol);
  EXPECT_THROW(listener.take(bytes_of("G")), ProtocolError);
}

}  // namespace
}  // namespace trellis::net
