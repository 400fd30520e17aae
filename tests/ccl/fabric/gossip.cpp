// How news spread in a large communicator, in which each rank talks to few others. Without a fabric: ranks send in
// turn, and each message arrives at once.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>
#include <string>

#include "ccl/transports/libfabric/presence/gossip_neighbours.h"
#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

// Ranks that each are on a host of their own: "h0", "h1", ... settle() lets them send in turn, and each message arrives
// at once.
class Ranks {
 public:
  explicit Ranks(Rank ranks) : told_(static_cast<std::size_t>(ranks)) {
    std::vector<std::size_t> places(static_cast<std::size_t>(ranks));
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::vector<Member> members;
    for (Rank r = 0; r < ranks; ++r)
      members.push_back({.host = "h" + std::to_string(r), .home = std::to_string(r), .process = r + 1});
    for (Rank r = 0; r < ranks; ++r) all_.emplace_back(Roster(7, r, places, members), 10s, ControlPaths{});
  }

  Presence& operator[](Rank r) { return all_[static_cast<std::size_t>(r)]; }
  Rank count() const { return static_cast<Rank>(all_.size()); }
  void die(Rank r) { dead_.insert(r); }
  bool dead(Rank r) const { return dead_.contains(r); }

  // Lets ranks send in turn until none has news left to tell; dead ranks neither send nor receive. Returns the number
  // of messages.
  int settle(std::size_t room = 4096) {
    int messages = 0;
    for (int before = -1; before != messages;) {
      before = messages;
      for (Rank r = 0; r < count(); ++r)
        if (!dead(r)) messages += tell(r, room);
    }
    return messages;
  }

  // The most ranks that any one rank has sent messages to.
  std::size_t most_told() const {
    return std::ranges::max(told_, {}, [](const auto& those) { return those.size(); }).size();
  }

 private:
  int tell(Rank from, std::size_t room) {
    Presence& p = (*this)[from];
    const std::vector<Rank> owed = p.take_owed();
    for (const Rank to : owed) {
      told_[static_cast<std::size_t>(from)].insert(to);
      std::vector<std::byte> message;
      message.resize(p.write_for(to, 0, room, message));
      EXPECT_LE(message.size(), room);
      PublicState state;
      EXPECT_TRUE(read_public(message, state));
      EXPECT_TRUE(dead(to) || (*this)[to].hear(state, 0));
      p.sending(to, 0);
      p.sent(to, 0, 0);  // a provider may also report messages to a dead rank as sent
    }
    return static_cast<int>(owed.size());
  }

  std::deque<Presence> all_;
  std::set<Rank> dead_;
  std::vector<std::set<Rank>> told_;
};

constexpr std::size_t few = 14;  // neighbours of a rank at most, where there are 65 to 128 ranks

TEST(Neighbours, AreOfEachOtherAndFew) {
  for (const Rank ranks : {33, 64, 100, 1000})
    for (Rank r = 0; r < ranks; ++r) {
      const std::vector<Rank> all = neighbours_of(r, ranks);
      EXPECT_LE(static_cast<int>(all.size()), 2 * std::bit_width(static_cast<unsigned>(ranks - 1)));
      for (const Rank other : all) {
        const std::vector<Rank> back = neighbours_of(other, ranks);
        EXPECT_NE(std::ranges::find(back, r), back.end()) << r << " and " << other << " of " << ranks;
      }
      for (const Rank other : below(r, ranks)) EXPECT_EQ(above(other, ranks), r);
      EXPECT_TRUE(r == 0 || std::ranges::find(all, above(r, ranks)) != all.end()) << r;
    }
}

TEST(Gossip, ARankLostInTheMiddleIsKnownToAllOthers) {
  for (const Rank lost : {0, 1, 32, 64, 99}) {
    Ranks ranks(100);
    ranks.die(lost);
    mark_lost(ranks[(lost + 50) % 100], lost);
    ranks.settle();
    for (Rank r = 0; r < ranks.count(); ++r) EXPECT_EQ(ranks[r].verdict().lost(), r == lost ? -1 : lost) << r;
    EXPECT_LE(ranks.most_told(), few);
  }
}

// All neighbours but one of the rank that has the news are dead, and so is every fifth of the others.
TEST(Gossip, GoesAroundManyRanksThatAreLost) {
  Ranks ranks(100);
  for (const Rank r : neighbours_of(50, 100))
    if (r != 51) ranks.die(r);
  for (Rank r = 0; r < 100; r += 5)
    if (r != 50) ranks.die(r);
  ranks[50].lock().verdict().mark_aborted();
  ranks.settle();
  for (Rank r = 0; r < ranks.count(); ++r) EXPECT_EQ(ranks[r].verdict().aborted(), ranks.dead(r) ? -1 : 50) << r;
}

TEST(Gossip, EveryBoardComesToAllThoughFewFitAMessage) {
  for (const std::size_t room : {700UL, 24'000UL}) {
    Ranks ranks(100);
    for (int turn = 0; turn < 3; ++turn)
      for (Rank r = 0; r < ranks.count(); ++r)
        ranks[r].lock().states().publish([&](PublicState& s) {
          s.board.assign(static_cast<std::size_t>(20 + r), std::byte(turn));
          ++s.head.posts;
        });
    ranks.settle(room);
    for (Rank r = 0; r < ranks.count(); ++r)
      for (Rank of = 0; of < ranks.count(); ++of) {
        const PublicState state = ranks[r].lock().states().of(of);
        EXPECT_EQ(state.head.posts, 3U);
        EXPECT_EQ(state.board, std::vector(static_cast<std::size_t>(20 + of), std::byte{2}));
      }
    EXPECT_LE(ranks.most_told(), few);
  }
}

TEST(Gossip, ASurveyTellsWhatAllDoAndWhoHasLeft) {
  Ranks ranks(70);
  for (Rank r = 0; r < ranks.count(); ++r)
    ranks[r].lock().states().change(
        [&](PublicState& s) { s.head.activity.operation = static_cast<std::uint64_t>(100 + r); });
  ranks[33].lock().states().publish([](PublicState& s) { s.head.left = true; });
  ranks.settle();
  ranks.die(33);
  const std::uint32_t first = ranks[9].lock().heartbeats().begin_survey();
  const std::uint32_t second = ranks[60].lock().heartbeats().begin_survey();
  const int messages = ranks.settle();
  for (Rank r = 0; r < ranks.count(); ++r) {
    EXPECT_EQ(ranks[9].lock().states().of(r).head.activity.operation, static_cast<std::uint64_t>(100 + r));
    EXPECT_TRUE(ranks[9].lock().heartbeats().surveyed(r, first) && ranks[60].lock().heartbeats().surveyed(r, second))
        << r;
    EXPECT_EQ(ranks[9].lock().states().left(r), r == 33);
  }
  EXPECT_LT(messages, 70 * 70);
  const std::vector<bool> reached =
      reached_from(9, ranks.count(), [&](Rank r) { return r != 9 && ranks[9].lock().states().left(r); });
  EXPECT_EQ(std::ranges::count(reached, true), 69);
}

// Rank 0 learns along a tree that all ranks have come, or which has not; all others learn it from rank 0.
TEST(Gossip, RankZeroTellsWhichRankDidNotJoin) {
  for (const Rank absent : {77, 64, -1}) {
    Ranks ranks(80);
    if (absent >= 0) ranks.die(absent);
    for (int turn = 0; turn < 10; ++turn) {
      for (Rank r = 0; r < ranks.count(); ++r) {
        if (turn == 0) ranks[r].lock().joining().come();
        const std::vector<Rank> missing = ranks[r].lock().joining().not_joined();
        for (const Rank awaited : missing) ask(ranks[r], awaited);
      }
      ranks.settle();
    }
    EXPECT_EQ(ranks[0].lock().joining().not_joined().empty(), absent < 0);
    if (absent < 0)
      EXPECT_EQ(ranks[0].lock().joining().settle(JoinOutcome::made), JoinOutcome::made);
    else
      ranks[70].lock().joining().give_up();
    ranks.settle();
    for (Rank r = 0; r < ranks.count(); ++r) {
      if (r == absent) continue;
      EXPECT_EQ(ranks[r].lock().joining().outcome(), absent < 0 ? JoinOutcome::made : JoinOutcome::dropped) << r;
      EXPECT_EQ(ranks[r].lock().joining().missing(), absent) << r;
    }
    EXPECT_EQ(ranks[5].roster().host(77), "h77");
    EXPECT_LE(ranks.most_told(), few);
  }
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
