// The wire that injects faults: what happens to an operation depends only on a seed and on the operation.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <stdexcept>
#include <utility>
#include <vector>

#include "ccl/transports/libfabric/wire/message_kind.h"
#include "tests/faults/hostile_wire.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr std::uint32_t peers = 3;
constexpr int rounds = 200;

// A wire that takes every operation and ends it at the next poll. Notes the numbers of its user's messages.
class PromptWire : public Wire {
 public:
  explicit PromptWire(std::vector<int>& carried) : carried_(carried) { limits_.inject = 64; }
  const WireLimits& limits() const override { return limits_; }
  std::span<const std::byte> address() const override { return {}; }
  fi_addr_t know(std::span<const std::byte>, std::uint32_t) override { return next_++; }
  std::unique_ptr<MemoryRegion> region(const MemoryDescription&, bool) override { return nullptr; }
  bool inject(fi_addr_t, const void* data, std::size_t) override {
    carried_.push_back(static_cast<const int*>(data)[token_at / sizeof(int)]);
    return true;
  }
  bool send(fi_addr_t to, const LocalBytes& b, WireOperation& op) override {
    return inject(to, b.data, b.bytes) && ends(op);
  }
  bool write(const WriteTarget&, const LocalBytes&, std::uint32_t, WireOperation& op) override { return ends(op); }
  bool send_tagged(fi_addr_t, const LocalBytes&, std::uint32_t, WireOperation& op) override { return ends(op); }
  bool receive(const LocalBytes&, WireOperation&) override { return true; }
  bool receive_tagged(const LocalBytes&, std::uint32_t, WireOperation&) override { return true; }
  void end() override {}
  int refusal() const override { return 0; }
  std::size_t poll(std::span<WireEvent> events) override {
    const std::size_t count = std::min(events.size(), ended_.size());
    std::copy_n(ended_.begin(), count, events.begin());
    ended_.erase(ended_.begin(), ended_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  int descriptor() override { return none; }

 private:
  bool ends(WireOperation& op) {
    ended_.push_back({WireEvent::What::done, &op, 0, 0});
    return true;
  }
  std::vector<int>& carried_;
  WireLimits limits_;
  fi_addr_t next_ = 40;
  std::deque<WireEvent> ended_;
};

struct Outcome {
  Fates met;
  std::vector<int> carried;  // the numbers of messages, in the order in which they were carried
  std::size_t failed = 0;
};

// Sends the same messages and pieces to each peer. What varies must not matter: the operations between two polls, the
// order of the peers, and whether further messages go between them.
Outcome send_all(const FaultInjection& h, int between_polls, bool backwards, bool further = false) {
  Outcome all;
  const auto wire = hostile(std::make_unique<PromptWire>(all.carried), h, &all.met);
  std::array<fi_addr_t, peers> known;
  for (std::uint32_t i = 0; i < peers; ++i) {
    const std::uint32_t peer = backwards ? peers - 1 - i : i;
    known[peer] = wire->know({}, peer);
  }
  std::deque<WireOperation> operations;
  std::deque<std::array<int, 12>> packets;  // a head with a token, and what follows it
  std::size_t ended = 0;
  const auto poll = [&] {
    std::array<WireEvent, 4> events;
    const std::size_t count = wire->poll(events);
    for (std::size_t i = 0; i < count; ++i) all.failed += events[i].what == WireEvent::What::failed ? 1 : 0;
    ended += count;
  };
  int taken = 0;
  const auto until_taken = [&](auto&& tries) {
    while (!tries()) poll();
    if (++taken % between_polls == 0) poll();
  };
  for (int round = 0; round < rounds; ++round)
    for (std::uint32_t i = 0; i < peers; ++i) {
      const std::uint32_t peer = backwards ? peers - 1 - i : i;
      packets.push_back({1, 0, round * 10 + static_cast<int>(peer), 0, 0, round % 7});
      const LocalBytes packet{packets.back().data(), sizeof packets.back(), nullptr};
      until_taken([&] { return wire->inject(known[peer], packet.data, packet.bytes); });
      const std::array<int, 12> credit = {1, 0, 1'000'000, 0, 0, -1, 0, round};
      if (further) until_taken([&] { return wire->inject(known[peer], credit.data(), sizeof credit); });
      WireOperation& message = operations.emplace_back();
      message.what = WireOperation::What::packet_out;
      until_taken([&] { return wire->send(known[peer], packet, message); });
      WireOperation& piece = operations.emplace_back();
      piece.what = WireOperation::What::piece_out;
      until_taken([&] { return wire->write({known[peer], 0, 0}, packet, 0, piece); });
    }
  while (ended < operations.size()) poll();
  for (int i = 0; i < 2 * h.hold; ++i) poll();  // injected messages have no completion: wait until all have been sent
  return all;
}

const FaultInjection everything{.seed = 5,
                                .reorder = 30,
                                .hold = 12,
                                .refuse = 30,
                                .credits = 6,
                                .fail = 10,
                                .former = 20,
                                .flip = 5,
                                .spoil = 40,
                                .twice = 15,
                                .stall = 1};

TEST(FaultInjection, TheSameOperationMeetsTheSameFateHoweverOftenItIsPolled) {
  const Outcome one = send_all(everything, 1, false), other = send_all(everything, 17, true);
  EXPECT_EQ(one.met.size(), 3 * peers * rounds);
  EXPECT_TRUE(one.met == other.met);
  EXPECT_EQ(one.failed, other.failed);
  EXPECT_NE(one.carried, other.carried) << "the order depends on when it is polled";
  FaultInjection second = everything;
  second.seed = 6;
  EXPECT_FALSE(one.met == send_all(second, 1, false).met);
}

TEST(FaultInjection, WhatElseIsSentMakesNoDifferenceToAMessage) {
  const Outcome alone = send_all(everything, 1, false), among = send_all(everything, 4, false, true);
  EXPECT_EQ(among.met.size(), alone.met.size() + peers * rounds);
  for (const auto& [sent, fate] : alone.met) EXPECT_EQ(among.met.at(sent), fate);
}

TEST(FaultInjection, AllMessagesButThoseThatFailAreCarriedOnceAndOutOfOrder) {
  FaultInjection once = everything;
  once.twice = once.flip = 0;
  Outcome one = send_all(once, 3, false);
  std::erase_if(one.carried, [](int first) { return first < 0; });  // forged ones, as if from former processes
  EXPECT_FALSE(std::ranges::is_sorted(one.carried));
  std::size_t pieces_failed = 0;
  for (const auto& [sent, fate] : one.met) pieces_failed += sent.kind == Sent::Kind::piece && fate.fails ? 1 : 0;
  EXPECT_EQ(one.carried.size(), 2 * peers * rounds - (one.failed - pieces_failed));
  EXPECT_GT(one.failed, pieces_failed);
  EXPECT_GT(pieces_failed, 0U);
}

TEST(FaultInjection, HappensAsOftenAsItSays) {
  FaultInjection h = everything;
  h.stall = 7;
  int held = 0, late = 0, failed = 0, former = 0, refused = 0, stalled = 0, twice = 0, flipped = 0, spoiled = 0;
  constexpr int all = 20'000;
  for (std::uint64_t number = 0; number < all; ++number) {
    const Fate f = fate_of(h, {.peer = 2, .kind = Sent::Kind::message, .number = number});
    held += f.hold > 0, late += f.late > 0, failed += f.fails, former += f.former, refused += f.refusals > 0;
    stalled += f.stall > 0, twice += f.twice, flipped += f.flips;
    spoiled += fate_of(h, {.peer = 2, .kind = Sent::Kind::piece, .number = number}).flips;
    EXPECT_LE(f.hold, 12);
    EXPECT_LE(f.stall, 7);
  }
  const auto is = [](int count, double share) { EXPECT_NEAR(count, share * all, 0.1 * share * all) << share; };
  is(held, 0.3), is(late, 0.3), is(failed, 0.1), is(former, 0.2), is(refused, 0.3), is(twice, 0.15), is(flipped, 0.05),
      is(spoiled, 0.4);
  EXPECT_NEAR(stalled, 0.01 * all, 60);
  EXPECT_FALSE(fate_of(h, {.kind = Sent::Kind::piece, .number = 3}).former);
}

TEST(FaultInjection, AWireThatSticksDoesSoForEachPeerAfterAsManyOperations) {
  std::vector<int> carried;
  const auto wire = hostile(std::make_unique<PromptWire>(carried), {.stick = 3});
  const fi_addr_t first = wire->know({}, 0), second = wire->know({}, 1);
  const auto inject = [&](fi_addr_t to, int number) {
    const std::array<int, 3> message = {1, 0, number};
    return wire->inject(to, message.data(), sizeof message);
  };
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(inject(first, i));
  for (int i = 10; i < 12; ++i) EXPECT_TRUE(inject(second, i));
  EXPECT_EQ(carried, (std::vector{0, 1, 2, 10, 11}));
}

TEST(FaultInjection, OneBitOfAMessageChangesOnTheWayAndNotInTheCallersMemory) {
  std::vector<int> carried;
  const auto wire = hostile(std::make_unique<PromptWire>(carried), {.flip = 100, .twice = 100});
  const fi_addr_t to = wire->know({}, 0);
  std::vector<int> bits;
  for (int i = 0; i < 200; ++i) {
    const std::array<int, 3> message = {1, 0, i};
    EXPECT_TRUE(wire->inject(to, message.data(), sizeof message));
    EXPECT_EQ(message, (std::array{1, 0, i}));
    ASSERT_EQ(carried.size(), 2 * static_cast<std::size_t>(i + 1));
    EXPECT_EQ(carried.back(), i) << "the second is whole";
    bits.push_back(std::popcount(static_cast<unsigned>(carried[carried.size() - 2] ^ i)));
  }
  EXPECT_LE(std::ranges::max(bits), 1);
  EXPECT_GT(std::ranges::count(bits, 1), 25) << "the wire shows a third of the message";
}

TEST(FaultInjection, IsReadByName) {
  const FaultInjection h = fault_injection_in(
      "seed=9,reorder=20,hold=3,refuse=1,credits=2,fail=4,only=1,stall=5,stick=6,former=7,places=8,outstanding=9,flip="
      "10,"
      "spoil=11,twice=12");
  EXPECT_EQ(h.seed, 9U);
  EXPECT_EQ(h.reorder, 20);
  EXPECT_EQ(h.hold, 3);
  EXPECT_EQ(h.credits, 2);
  EXPECT_EQ(h.stall, 5);
  EXPECT_EQ(h.stick, 6);
  EXPECT_EQ(h.former, 7);
  EXPECT_EQ(h.places, 8);
  EXPECT_EQ(h.outstanding, 9);
  EXPECT_EQ(h.flip, 10);
  EXPECT_EQ(h.spoil, 11);
  EXPECT_EQ(h.twice, 12);
  EXPECT_EQ(h.only, 1);
  for (const char* wrong : {"speed=1", "seed", "seed=", "seed=x", "reorder=1;fail=2", "hold=0"})
    EXPECT_THROW(fault_injection_in(wrong), std::invalid_argument) << wrong;
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
