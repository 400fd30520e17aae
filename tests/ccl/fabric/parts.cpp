// Parts of the transport over libfabric that need no fabric.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "ccl/transports/libfabric/data/peer_addresses.h"
#include "ccl/transports/libfabric/lanes/piece_arrival_tracker.h"
#include "ccl/transports/libfabric/presence/public_state.h"
#include "ccl/transports/libfabric/rails/rail_load_balancer.h"
#include "ccl/transports/libfabric/rails/stall_detector.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

TEST(PieceArrivalTracker, APieceCountsOnceWhateverTheOrder) {
  PieceArrivalTracker all;
  const std::uint32_t a = all.open(3, 7, true).value(), b = all.open(1, 2, true).value();
  EXPECT_EQ(all.land(a + 2), 7);
  EXPECT_EQ(all.land(a + 2), -1);
  EXPECT_EQ(all.land(b), 2);
  EXPECT_TRUE(all.complete(b));
  EXPECT_EQ(all.land(a), 7);
  EXPECT_FALSE(all.complete(a));
  EXPECT_EQ(all.landed(a), 2U);
  EXPECT_EQ(all.land(a + 1), 7);
  EXPECT_TRUE(all.complete(a));
}

TEST(PieceArrivalTracker, WhatComesAfterTheEndIsIgnored) {
  PieceArrivalTracker all;
  const std::uint32_t old = all.open(2, 1, true).value();
  all.close(old);
  EXPECT_EQ(all.land(old), -1);
  const std::uint32_t next = all.open(2, 3, true).value();  // takes the closed one's slot
  EXPECT_NE(next, old);
  EXPECT_EQ(all.land(old), -1);
  EXPECT_EQ(all.land(next + 2), -1);  // it has pieces 0 and 1 only
  EXPECT_EQ(all.land(next + (1U << 20)), -1);
  EXPECT_EQ(all.landed(next), 0U);
}

// A thousand earlier processes had four landings open each. At most one of these is mistaken for a landing of this
// process, so pieces that arrive late from an earlier process are practically never accepted.
TEST(PieceArrivalTracker, ThoseOfAFormerProcessAreOthers) {
  PieceArrivalTracker all(PieceArrivalTracker::most_places, 1);
  for (int i = 0; i < 4; ++i) all.open(1, 0, true);
  int taken = 0;
  for (std::uint64_t seed = 2; seed < 1002; ++seed) {
    PieceArrivalTracker former(PieceArrivalTracker::most_places, seed);
    for (int i = 0; i < 4; ++i) taken += all.land(former.open(1, 0, true).value()) >= 0;
  }
  EXPECT_LE(taken, 1);
}

TEST(PieceArrivalTracker, OneWaitsForAPlaceAndHalfAreForThoseWhoseSenderWaits) {
  PieceArrivalTracker all(4, 9);
  const std::uint32_t first = all.open(1, 0, false).value();
  EXPECT_TRUE(all.open(1, 1, false));
  EXPECT_FALSE(all.has_room(false));
  EXPECT_FALSE(all.open(1, 2, false));
  EXPECT_TRUE(all.open(1, 3, true));
  const std::uint32_t last = all.open(1, 4, true).value();
  EXPECT_FALSE(all.open(1, 5, true));
  EXPECT_FALSE(all.has_room(true));
  EXPECT_EQ(all.land(last), 4);
  all.close(last);
  EXPECT_TRUE(all.has_room(true));
  EXPECT_FALSE(all.open(1, 2, false)) << "three of four are in use";
  EXPECT_EQ(all.land(first), 0);
  all.close(first);
  EXPECT_TRUE(all.open(1, 5, true));
  EXPECT_FALSE(PieceArrivalTracker(1).open(1, 0, false));
  EXPECT_TRUE(PieceArrivalTracker(1).open(1, 0, true));
}

TEST(PieceArrivalTracker, EveryPlaceCanBeUsed) {
  PieceArrivalTracker all(PieceArrivalTracker::most_places, 3);
  std::vector<std::uint32_t> open;
  while (const auto first = all.open(2, static_cast<Rank>(open.size()), true)) open.push_back(*first);
  ASSERT_EQ(open.size(), 4096U);
  for (std::size_t i = 0; i < open.size(); ++i) EXPECT_EQ(all.land(open[i] + 1), static_cast<Rank>(i));
}

// The bytes that each rail gets, if they move `speeds` bytes a microsecond and `ahead` pieces are always under way.
std::vector<std::size_t> shares(std::span<const double> speeds, std::size_t pieces, std::size_t ahead) {
  struct Piece {
    int rail;
    Deadline posted, ends;
  };
  constexpr std::size_t bytes = 1000;
  RailLoadBalancer rails(static_cast<int>(speeds.size()));
  std::vector<std::size_t> got(speeds.size());
  std::vector<Deadline> free(speeds.size());
  std::vector<Piece> under_way;
  Deadline now{};
  for (std::size_t i = 0; i < pieces; ++i) {
    if (under_way.size() == ahead) {
      const auto next = std::ranges::min_element(under_way, {}, &Piece::ends);
      now = next->ends;
      rails.done(next->rail, bytes, next->posted, true, now);
      under_way.erase(next);
    }
    const int rail = rails.choose(bytes);
    const auto at = static_cast<std::size_t>(rail);
    rails.posted(rail, bytes, now);
    const auto takes = std::chrono::nanoseconds(static_cast<std::int64_t>(1e3 * bytes / speeds[at]));
    free[at] = std::max(free[at], now) + takes;
    under_way.push_back({rail, now, free[at]});
    got[at] += bytes;
  }
  return got;
}

TEST(RailLoadBalancer, GetBytesInProportionToTheirSpeed) {
  const auto two = shares(std::array{3.0, 1.0}, 4000, 16);
  EXPECT_NEAR(static_cast<double>(two[0]) / static_cast<double>(two[1]), 3, 0.3);
  const auto three = shares(std::array{1.0, 1.0, 2.0}, 4000, 16);
  EXPECT_NEAR(static_cast<double>(three[2]) / static_cast<double>(three[0] + three[1]), 1, 0.1);
}

// The pieces that each of two rails gets. Each is done after 20 ns, as over TCP when the socket has room; but every
// `each`-th one on the second rail takes `late`.
std::array<int, 2> turns(std::chrono::nanoseconds late, int each) {
  RailLoadBalancer rails(2);
  std::array<int, 2> got = {};
  Deadline now{};
  for (int i = 0; i < 1000; ++i) {
    const int rail = rails.choose(100);
    const Deadline posted = now;
    rails.posted(rail, 100, posted);
    now += rail == 1 && ++got[1] % each == 0 ? late : 20ns;
    rails.done(rail, 100, posted, true, now);
    got[0] += rail == 0 ? 1 : 0;
  }
  return got;
}

TEST(RailLoadBalancer, GetAPieceEachInTurnWhenEachIsDoneAtOnce) {
  EXPECT_EQ(turns(20ns, 1)[0], 500);
  EXPECT_EQ(turns(50ns, 1)[0], 500) << "so much is by chance";
  EXPECT_EQ(turns(1s, 10)[0], 500) << "one in ten was late";
}

TEST(RailLoadBalancer, TheSlowestStillGetsSome) {
  const int got = turns(1s, 1)[1];
  EXPECT_GT(got, 1000 / 10);
  EXPECT_LT(got, 1000 / 6);
}

// Pieces take a nanosecond to a second, at random, as on a busy machine. A rail must not count as more than eight times
// slower than another for that.
TEST(RailLoadBalancer, NoneGoesWithoutWhateverTimePiecesTake) {
  for (unsigned seed = 0; seed < 50; ++seed)
    for (const int count : {2, 3}) {
      std::mt19937 random(seed);
      RailLoadBalancer rails(count);
      std::vector<int> got(static_cast<std::size_t>(count));
      Deadline now{};
      constexpr int pieces = 3000;
      for (int i = 0; i < pieces; ++i) {
        const int rail = rails.choose(1000);
        const Deadline posted = now;
        rails.posted(rail, 1000, posted);
        now += std::chrono::nanoseconds(static_cast<std::int64_t>(std::pow(10.0, random() % 10)));
        rails.done(rail, 1000, posted, true, now);
        ++got[static_cast<std::size_t>(rail)];
      }
      EXPECT_GT(*std::ranges::min_element(got), 0.9 * pieces / (1 + 8 * (count - 1))) << "seed " << seed;
    }
}

TEST(RailLoadBalancer, AFullOneHoldsUpNoPiece) {
  RailLoadBalancer rails(2, 2);
  for (int i = 0; i < 2; ++i) rails.posted(1, 10, {});
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(rails.choose(10), 0);
    rails.posted(0, 10, {});
    rails.done(0, 10, {}, true, {});
  }
}

TEST(RailLoadBalancer, TheNextOneTakesThePacketsOfOneThatIsLeft) {
  RailLoadBalancer rails(3);
  EXPECT_EQ(rails.first(), 0);
  rails.leave(0);
  EXPECT_EQ(rails.first(), 1);
  rails.leave(2);
  EXPECT_TRUE(rails.left().has(0) && !rails.left().has(1) && rails.left().has(2));
  EXPECT_TRUE(rails.only_one());
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(rails.choose(10), 1);
    rails.posted(1, 10, {});
  }
}

// Checks a rail for stalls, with a patience of a second. Times are since the test began.
class OverdueRail : public ::testing::Test {
 protected:
  using Is = StallDetector::Is;
  using Since = std::chrono::milliseconds;
  Is look(std::uint64_t sent, std::uint64_t arrived, Since heard, Since now) {
    return rail_.look(sent, arrived, begun_ + heard, begun_ + now, 1s);
  }

  const Deadline begun_ = Deadline() + 1h;
  StallDetector rail_;
};

TEST_F(OverdueRail, IsWhatHasNotArrivedLongAfterThePeerWasHeard) {
  EXPECT_EQ(look(0, 0, -9s, 0s), Is::fine);
  EXPECT_EQ(look(4, 0, -9s, 0s), Is::fine);
  EXPECT_EQ(look(4, 0, -9s, 400ms), Is::fine);
  for (auto now = 600ms; now < 20s; now += 200ms)
    EXPECT_EQ(look(4, 0, -9s, now), Is::unsure) << "nothing was heard: it may be the peer that has stopped";
}

TEST_F(OverdueRail, EndsWithWhatArrives) {
  look(4, 0, 0ms, 0ms), look(4, 0, 400ms, 400ms);
  EXPECT_EQ(look(9, 1, 800ms, 800ms), Is::fine) << "one has arrived";
  look(9, 1, 1200ms, 1200ms);
  EXPECT_EQ(look(9, 1, 1600ms, 1650ms), Is::unsure);
  EXPECT_EQ(look(9, 1, 1800ms, 1800ms), Is::stopped);
  EXPECT_EQ(look(9, 9, 1800ms, 1800ms), Is::fine);
  EXPECT_EQ(look(10, 9, 1900ms, 1900ms), Is::fine) << "sent just now";
}

TEST_F(OverdueRail, MayHaveToBeConfirmedByMoreAnswers) {
  const auto enough = [&](Since now) { return rail_.look(4, 0, begun_ + now, begun_ + now, 1s, 3); };
  look(4, 0, 0ms, 0ms), look(4, 0, 0ms, 400ms), look(4, 0, 0ms, 800ms);
  EXPECT_EQ(enough(1200ms), Is::unsure) << "it may have gone on just now";
  EXPECT_EQ(enough(1250ms), Is::unsure);
  EXPECT_EQ(enough(1300ms), Is::stopped);
}

TEST_F(OverdueRail, TakesNoPauseOfOursForItsOwn) {
  EXPECT_EQ(look(4, 0, 0s, 0s), Is::fine);
  EXPECT_EQ(look(4, 0, 3s, 3s), Is::fine) << "our process stood still for three seconds";
  EXPECT_EQ(look(4, 0, 3400ms, 3400ms), Is::fine);
  EXPECT_EQ(look(4, 0, 3800ms, 3800ms), Is::unsure);
  EXPECT_EQ(look(4, 0, 4s, 4s), Is::stopped);
}

TEST(RailLoadBalancer, OneThatFailsComesLast) {
  RailLoadBalancer rails(2);
  for (int i = 0; i < 3; ++i) {
    rails.posted(1, 10, {});
    rails.done(1, 10, {}, false, {});
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(rails.choose(10), 0);
    rails.posted(0, 10, {});
  }
}

TEST(RailLoadBalancer, TakeSoManyPiecesAtATime) {
  RailLoadBalancer rails(2, 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(rails.full(1));
    rails.posted(1, 10, {});
  }
  EXPECT_TRUE(rails.full(1));
  EXPECT_FALSE(rails.full(0));
  rails.done(1, 10, {}, true, {});
  EXPECT_FALSE(rails.full(1));
  rails.posted(1, 10, {});
  rails.leave(1);
  EXPECT_FALSE(rails.full(1));
}

TEST(PeerAddresses, ARankIsAskedEverLater) {
  PeerAddresses known;
  const Deadline begun = Deadline() + 1h;
  std::vector<std::int64_t> asked;
  for (auto at = 0ms; at < 10s; at += 10ms)
    if (known.is_to_be_asked(begun + at)) asked.push_back(at.count());
  EXPECT_EQ(asked, (std::vector<std::int64_t>{0, 50, 150, 350, 750, 1550, 3150, 5150, 7150, 9150}));
}

TEST(PublicState, ComesBackWholeOrNotAtAll) {
  PublicState s{.address = std::vector<std::byte>(5, std::byte{1}),
                .note = std::vector<std::byte>(3, std::byte{2}),
                .board = std::vector<std::byte>(7, std::byte{3})};
  s.head.version = 12;
  s.head.activity.waits_for = 4;
  std::vector<std::byte> bytes(public_bytes(s));
  write_public(s, bytes);
  PublicState read;
  ASSERT_TRUE(read_public(bytes, read));
  EXPECT_EQ(read.head.version, 12U);
  EXPECT_EQ(read.head.activity.waits_for, 4);
  EXPECT_EQ(read.address, s.address);
  EXPECT_EQ(read.note, s.note);
  EXPECT_EQ(read.board, s.board);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(read_public(std::span(bytes).first(size), read)) << size;
}

TEST(RailSet, IsAllBelowOneAndSomeOfTheNext) {
  for (const int first : {0, 1, 3, 4, 250, 100'000}) {
    RailSet all, other;
    for (int rail = 0; rail < first; ++rail) {
      EXPECT_FALSE(all.has(rail));
      all.add(rail);
      EXPECT_TRUE(all.has(rail));
    }
    EXPECT_EQ(all.first_outside(), first);
    EXPECT_EQ(all.count(), first);
    other = all;
    all.add(first + 2);
    other.add(first + 1);
    EXPECT_FALSE(all.has(first) || all.has(first + 1));
    EXPECT_EQ(all.first_outside(), first);
    RailSet both = all | other;
    EXPECT_EQ(both, other | all);
    EXPECT_EQ(both.count(), first + 2);
    both.add(first);
    EXPECT_EQ(both.first_outside(), first + 3);
    EXPECT_EQ(both | all, both);
    EXPECT_EQ(RailSet(both.word()), both);
    EXPECT_TRUE(both.is_plausible());
  }
}

// A rail that was given up no longer counts once another rail has taken its slot.
TEST(DeliveryCounters, CountsTheRailThatHasThePlaceOfAFormerOne) {
  DeliveryCounters t(2);
  const auto counts = [&] { return std::pair(t.sent_to(1)[0], t.arrivals()(1)[0]); };
  t.sent(1, 0);
  t.arrived(1, 0);
  EXPECT_EQ(counts(), std::pair(std::uint64_t{1}, std::uint64_t{1}));
  for (int rail = 1; rail <= most_rails; ++rail) t.begin(rail);
  EXPECT_EQ(counts(), std::pair(std::uint64_t{0}, std::uint64_t{0}));
  t.failed(1, 0);
  t.had_arrived(1, 0);
  t.arrived(1, 0);
  EXPECT_EQ(counts(), std::pair(std::uint64_t{0}, std::uint64_t{0})) << "of the former one";
  t.sent(1, most_rails);
  t.arrived(1, most_rails);
  EXPECT_EQ(counts(), std::pair(std::uint64_t{1}, std::uint64_t{1}));
}

// Values that no rank writes, each in one field of an otherwise good message.
TEST(PublicState, IsRefusedWithValuesThatNoRankWrites) {
  const std::size_t activity = offsetof(PublicStateHeader, activity);
  const std::pair<std::size_t, int> wrong[] = {
      {offsetof(PublicStateHeader, joined), 2},         {offsetof(PublicStateHeader, gives_up), 255},
      {offsetof(PublicStateHeader, left), 4},           {offsetof(PublicStateHeader, outcome), 3},
      {offsetof(PublicStateHeader, rails_left), 1},     {activity + offsetof(RankActivity, running), 3},
      {activity + offsetof(RankActivity, divides), 3},  {activity + offsetof(RankActivity, collective), 14},
      {activity + offsetof(RankActivity, type), 17},    {activity + offsetof(RankActivity, wire), 200},
      {activity + offsetof(RankActivity, reduction), 6}};
  PublicState s;
  std::vector<std::byte> good(public_bytes(s));
  write_public(s, good);
  ASSERT_TRUE(read_public(good, s));
  for (const auto& [at, value] : wrong) {
    std::vector<std::byte> bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    EXPECT_FALSE(read_public(bytes, s)) << at;
    bytes[at] = static_cast<std::byte>(value == 255 ? 1 : 0);
    EXPECT_TRUE(read_public(bytes, s)) << at;
  }
}

TEST(PublicState, NamesRanksOfItsCommunicator) {
  PublicStateHeader h{.from = 3, .lost = 1};
  EXPECT_TRUE(names_ranks_of(h, 4));
  EXPECT_FALSE(names_ranks_of(h, 3));
  for (std::int32_t* const rank : {&h.to, &h.lost, &h.aborted, &h.missing, &h.activity.waits_for, &h.activity.root})
    for (const std::int32_t wrong : {4, -2}) {
      const std::int32_t right = std::exchange(*rank, wrong);
      EXPECT_FALSE(names_ranks_of(h, 4)) << wrong;
      *rank = right;
    }
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
