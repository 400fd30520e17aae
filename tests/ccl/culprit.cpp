// Who is at fault where ranks wait in several communicators of a family.
#include "ccl/failure/culprit.h"

#include <gtest/gtest.h>

#include <thread>

#include "ccl/store.h"
#include "ccl/transports/open.h"
#include "device/device.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using How = Culprit::How;

// One rank's membership in one communicator.
struct Place {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<FamilyMember> family;
};

class CulpritTest : public testing::Test {
 protected:
  // The memberships of all ranks in a new communicator. `parent`: those in the one that it is split from; `in_parent`:
  // the ranks' numbers in that one.
  std::vector<Place> joined(Rank ranks, const std::vector<Place>* parent = nullptr,
                            const std::vector<Rank>& in_parent = {}) {
    const auto store = memory_store();
    std::vector<Place> all(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (Rank r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        Place& p = all[static_cast<std::size_t>(r)];
        p.transport = open_transport(store, {.rank = r,
                                             .ranks = ranks,
                                             .config = {.transport = "loopback"},
                                             .device = device_.get(),
                                             .deadline = Clock::now() + 20s});
        const FamilyMember* const of =
            parent == nullptr
                ? nullptr
                : (*parent)[static_cast<std::size_t>(in_parent[static_cast<std::size_t>(r)])].family.get();
        p.family = std::make_unique<FamilyMember>(*p.transport, of, in_parent);
      });
    for (std::thread& t : threads) t.join();
    return all;
  }

  // The culprit that a rank which waits for `first` names, if in the last minute no other rank's state changed except
  // where `beat` changed it.
  static Culprit found(const Place& mine, Rank first, const std::vector<Rank>& needed,
                       const std::function<void()>& beat) {
    HeartbeatMonitor watch(1min);
    const Deadline now = Clock::now();
    watch.look_now(*mine.transport, now - 1min);
    beat();
    watch.look_now(*mine.transport, now);
    return culprit_of({*mine.transport, *mine.family, watch}, first, needed);
  }

 private:
  const std::shared_ptr<device::Device> device_ = device::open("host");
};

RankActivity waiting(Rank for_rank, std::uint64_t heartbeat = 1) {
  return {.operation = 1, .heartbeat = heartbeat, .waits_for = for_rank, .running = true};
}

// Slow data may move between other ranks only: a waiting rank learns of that from the counters that they publish.
TEST_F(CulpritTest, WhereDataMoveIsSeen) {
  const auto world = joined(2);
  RankActivity theirs = waiting(0);
  HeartbeatMonitor watch(30ms);
  Deadline now = Clock::now();
  const auto look = [&] {
    world[1].transport->show(theirs);
    watch.look_now(*world[0].transport, now += 1s);
    return watch.moved(1, now, 1s);
  };
  theirs.moves = 7;
  EXPECT_FALSE(look());  // it may have moved long ago
  ++theirs.heartbeat;
  EXPECT_FALSE(look());
  ++theirs.moves;
  EXPECT_TRUE(look());
  EXPECT_TRUE(look());  // it has moved within the last second
  EXPECT_FALSE(look());
}

TEST_F(CulpritTest, WhoWaitsInAChildIsNotItButTheOneThatItWaitsFor) {
  const auto world = joined(3);
  const auto child = joined(2, &world, {1, 2});
  world[0].transport->show(waiting(1));
  const Culprit c = found(world[0], 1, {1, 2}, [&] { child[0].family->waits_for(1); });
  EXPECT_EQ(c.how, How::idle);
  EXPECT_EQ(c.rank, 2);
  child[0].family->rests();
  EXPECT_EQ(found(world[0], 1, {1, 2}, [] {}).rank, 1) << "it is late itself";
}

TEST_F(CulpritTest, TheChainLeadsThroughGrandchildrenAndBack) {
  const auto world = joined(4);
  const auto child = joined(3, &world, {1, 2, 3});
  const auto grandchild = joined(2, &child, {1, 0});  // ranks 2 and 1 of the world
  world[0].transport->show(waiting(1));
  std::uint64_t beats = 0;
  const Culprit c = found(world[0], 1, {}, [&] {
    grandchild[1].family->waits_for(0);  // 1 waits for 2
    world[2].transport->show(waiting(3, ++beats));
    world[2].family->waits_for(3);
  });
  EXPECT_EQ(c.how, How::idle);
  EXPECT_EQ(c.rank, 3);
}

TEST_F(CulpritTest, WhoIsNotInThisCommunicatorIsNamedByItsPlace) {
  auto world = joined(4);
  const auto tensor = joined(2, &world, {0, 1}), data = joined(2, &world, {0, 2});
  data[1].transport->show(waiting(0));
  const auto beat = [&] { tensor[0].family->waits_for(1); };
  for (const bool closed : {false, true}) {
    if (closed) world[2].family.reset();
    const Culprit c = found(data[1], 0, {0}, beat);
    EXPECT_EQ(c.how, How::idle) << closed;
    EXPECT_EQ(c.rank, -1) << closed;
    EXPECT_EQ(c.place, 1) << closed;
    EXPECT_EQ(name_of({*data[1].transport, *data[1].family, HeartbeatMonitor(1s)}, c),
              "rank 1 of the first communicator (not in this one)");
  }
}

TEST_F(CulpritTest, WhoHasJustComeDoesNotStandStill) {
  const auto world = joined(3);
  world[1].transport->show(waiting(2));
  HeartbeatMonitor watch(1min), later(1min);
  const Deadline now = Clock::now();
  watch.look_now(*world[1].transport, now - 1min);
  world[0].transport->show(waiting(2));
  watch.look_now(*world[1].transport, now);
  const Culprit c = culprit_of({*world[1].transport, *world[1].family, watch}, 0, std::vector<Rank>{0, 2});
  EXPECT_EQ(c.how, How::idle);
  EXPECT_EQ(c.rank, 2);
  later.look_now(*world[1].transport, now - 1min);
  EXPECT_EQ(culprit_of({*world[1].transport, *world[1].family, later}, 0, std::vector<Rank>{0, 2}).how, How::still)
      << "it shows no heartbeat";
}

TEST_F(CulpritTest, NobodyIsWhereAllMove) {
  const auto world = joined(3);
  std::uint64_t beats = 0;
  const Culprit c = found(world[0], 1, {1, 2}, [&] {
    ++beats;
    for (const Rank r : {1, 2}) world[static_cast<std::size_t>(r)].transport->show(waiting(0, beats));
  });
  EXPECT_EQ(c.how, How::none);
}

TEST_F(CulpritTest, DataThatMoveSayNothingOfWhoHasNotCome) {
  const auto world = joined(3);
  HeartbeatMonitor watch(1s);
  const Deadline begun = Clock::now();
  world[1].transport->show(waiting(2));
  watch.look_now(*world[0].transport, begun);
  watch.data_moved(begun + 2s);
  EXPECT_EQ(watch.unchanged(1, begun + 3s), 1s);
  EXPECT_EQ(watch.unchanged(2, begun + 3s), 3s);
  EXPECT_EQ(watch.longest_absence(*world[0].transport, 1, begun + 3s), 3s);
  EXPECT_EQ(watch.longest_absence(*world[0].transport, 0, begun + 3s), 0s) << "all have come so far";
  watch.excuse(1s);
  EXPECT_EQ(watch.unchanged(2, begun + 3s), 2s);
}

TEST(AwayFor, IsTheTimeInWhichThisThreadHasNotLooked) {
  const Deadline begun = Clock::now();
  away_for(begun, 1s, begun);
  EXPECT_EQ(away_for(begun + 900ms, 1s, begun), 0s);
  EXPECT_EQ(away_for(begun + 2900ms, 1s, begun), 2s);
  EXPECT_EQ(away_for(begun + 5s, 1s, begun + 4500ms), 0s) << "it did not wait before";
}

}  // namespace
}  // namespace trellis::ccl
