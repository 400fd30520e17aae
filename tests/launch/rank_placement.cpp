// Where ranks are put on machines that are not here.
#include "launch/rank_placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kernels/dispatch/cpu_quota.h"
#include "launch/run_on_ranks.h"

namespace trellis::launch {
namespace {

using kernels::no_quota;

// A machine with cores of two hardware threads, numbered as Linux does, eight to a cache. Cores from `usable` on belong
// to others.
TopoMachine machine(int cores, int usable) {
  TopoMachine m;
  for (int c = 0; c < cores; ++c) {
    if (c % 8 == 0) m.whole.parts.push_back({.kind = TopoObject::Kind::cache, .level = 3});
    TopoObject core{.kind = TopoObject::Kind::core, .number = c};
    for (const int thread : {c, c + cores})
      core.parts.push_back({.kind = TopoObject::Kind::thread, .number = thread, .usable = c < usable});
    m.whole.parts.back().parts.push_back(std::move(core));
  }
  return m;
}
TopoMachine machine(int cores) { return machine(cores, cores); }

// Checks that each rank has `each` cores of its own, with both threads of each.
void expect_own_cores(const std::vector<RankPlace>& places, int cores, int ranks, int each) {
  ASSERT_EQ(places.size(), static_cast<std::size_t>(ranks)) << cores << " cores";
  std::set<int> all;
  for (const RankPlace& p : places) {
    EXPECT_EQ(p.cores, each) << cores << " cores";
    EXPECT_EQ(p.threads.size(), 2 * static_cast<std::size_t>(each)) << cores << " cores";
    for (const int thread : p.threads) {
      EXPECT_TRUE(all.insert(thread).second) << thread << " is another rank's";
      EXPECT_TRUE(p.threads.front() % cores <= thread % cores && thread % cores < p.threads.front() % cores + each);
    }
  }
}

TEST(Places, RanksShareTheCoresOutWhole) {
  expect_own_cores(places_for(machine(16), 2, Pin::share, no_quota), 16, 2, 8);
  expect_own_cores(places_for(machine(16), 4, Pin::share, no_quota), 16, 4, 4);
  expect_own_cores(places_for(machine(2), 2, Pin::share, no_quota), 2, 2, 1);
  expect_own_cores(places_for(machine(256), 3, Pin::share, no_quota), 256, 3, 85);
  expect_own_cores(places_for(machine(1024), 16, Pin::share, no_quota), 1024, 16, 64);
  expect_own_cores(places_for(machine(1024), 1024, Pin::share, no_quota), 1024, 1024, 1);
}

TEST(Places, ASingleRankAndRanksThatOutnumberCoresRunAnywhere) {
  for (const int cores : {1, 2, 256, 1024})
    for (const int ranks : {1, cores + 1}) {
      const std::vector<RankPlace> places = places_for(machine(cores), ranks, Pin::share, no_quota);
      ASSERT_EQ(places.size(), 1U);
      EXPECT_TRUE(places[0].threads.empty());
      EXPECT_EQ(places[0].cores, ranks == 1 ? cores : 1);
    }
  EXPECT_EQ(places_for({}, 2, Pin::share, no_quota).at(0).cores, 1) << "no core is known";
}

// No rank gets cores that taskset, a control group or a batch system gave to others.
TEST(Places, OthersCoresAreLeftAlone) {
  for (const Pin pin : {Pin::share, Pin::core})
    for (const int ranks : {2, 4, 16})
      for (const RankPlace& p : places_for(machine(64, 16), ranks, pin, no_quota))
        for (const int thread : p.threads) EXPECT_LT(thread % 64, 16) << ranks << " ranks";
  expect_own_cores(places_for(machine(64, 16), 4, Pin::share, no_quota), 64, 4, 4);
}

// Ranks that are each kept on a core take the second threads of cores where there are more ranks, and then share.
TEST(Places, RanksBeyondTheCoresTakeTheirOtherThreads) {
  const auto threads = [](int cores, int usable, int ranks) {
    std::vector<int> all;
    for (const RankPlace& p : places_for(machine(cores, usable), ranks, Pin::core, no_quota)) {
      EXPECT_EQ(p.cores, 1);
      EXPECT_EQ(p.threads.size(), 1U);
      all.push_back(p.threads.front());
    }
    return all;
  };
  EXPECT_EQ(threads(4, 4, 3), (std::vector{0, 1, 2}));
  EXPECT_EQ(threads(4, 4, 4), (std::vector{0, 1, 2, 3}));
  for (const int ranks : {5, 8, 9}) EXPECT_EQ(threads(4, 4, ranks), (std::vector{0, 1, 2, 3, 4, 5, 6, 7})) << ranks;
  EXPECT_EQ(threads(64, 2, 3), (std::vector{0, 1, 64, 65}));
  EXPECT_EQ(std::ranges::count(threads(16, 16, 32), 31), 1);
  TopoMachine uneven = machine(2);  // one core with a thread, and one with two
  uneven.whole.parts[0].parts[0].parts.pop_back();
  std::vector<int> found;
  for (const RankPlace& p : places_for(uneven, 4, Pin::core, no_quota)) found.push_back(p.threads.at(0));
  EXPECT_EQ(found, (std::vector{0, 1, 3}));
  EXPECT_EQ(places_for({}, 2, Pin::core, no_quota).size(), 1U) << "no core is known";
}

TEST(Places, UnderAQuotaRanksRunAnywhereAndStartFewThreads) {
  for (const int ranks : {1, 2, 16})
    for (const double quota : {0.5, 1.5, 8.0}) {
      const std::vector<RankPlace> places = places_for(machine(64), ranks, Pin::share, quota);
      ASSERT_EQ(places.size(), 1U);
      EXPECT_TRUE(places[0].threads.empty());
      EXPECT_EQ(places[0].cores, std::max(1, static_cast<int>(quota) / ranks));
    }
  expect_own_cores(places_for(machine(64), 4, Pin::share, 64), 64, 4, 16);
}

TEST(Places, ABenchmarkHasARankForEachCoreItMayKeepBusy) {
  EXPECT_EQ(usual_ranks(1, no_quota), 2);
  EXPECT_EQ(usual_ranks(2, no_quota), 2);
  EXPECT_EQ(usual_ranks(256, no_quota), 256);
  EXPECT_EQ(usual_ranks(1920, no_quota), most_ranks_started);
  EXPECT_EQ(usual_ranks(64, 1.5), 2);
  EXPECT_EQ(usual_ranks(64, 12.5), 12);
}

}  // namespace
}  // namespace trellis::launch
