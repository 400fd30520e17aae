// How many threads ranks compute with, on machines that are not here.
#include "train/trainer/threads_per_rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/dispatch/cpu_quota.h"
#include "kernels/dispatch/sysfs_topology.h"

namespace trellis::train {
namespace {

CoresOfRank on(int begin, int end, std::uint64_t machine = 1, std::uint64_t group = 1) {
  CoresOfRank rank{.machine = machine, .group = group};
  for (int core = begin; core < end; ++core) rank.add(core);
  return rank;
}

// The number of each rank's own threads.
std::vector<int> threads(const std::vector<CoresOfRank>& all) {
  std::vector<int> each;
  for (std::size_t r = 0; r < all.size(); ++r) each.push_back(own_threads(all, r));
  return each;
}

TEST(OwnThreads, AreTheCoresOfARankThatHasItsOwn) {
  EXPECT_EQ(threads({on(0, 8), on(8, 16)}), (std::vector{8, 8}));
  EXPECT_EQ(threads({on(0, 4), on(4, 8), on(8, 12), on(12, 16)}), (std::vector{4, 4, 4, 4}));
  EXPECT_EQ(threads({on(0, 1), on(1, 16)}), (std::vector{1, 15}));
}

TEST(OwnThreads, AreAShareOfTheCoresThatRanksHaveTogether) {
  for (const int cores : {1, 2, 16, 256, 1024})
    for (const int ranks : {1, 2, 3, 4, 8, 1024})
      EXPECT_EQ(own_threads(std::vector(static_cast<std::size_t>(ranks), on(0, cores)), 0), std::max(1, cores / ranks))
          << cores << " cores, " << ranks << " ranks";
  EXPECT_EQ(threads({on(0, 12), on(8, 16)}), (std::vector{10, 6})) << "four are of both";
}

TEST(OwnThreads, OfAnotherMachineDoNotMatter) {
  EXPECT_EQ(threads({on(0, 16), on(0, 16, 2)}), (std::vector{16, 16}));
  EXPECT_EQ(threads({on(0, 16), on(0, 16, 1, 2)}), (std::vector{8, 8})) << "another control group of this one does";
}

TEST(OwnThreads, AreNoMoreThanAQuotaKeepsBusy) {
  for (const std::uint64_t granted : {1U, 2U, 8U, 64U}) {
    CoresOfRank rank = on(0, 64);
    rank.granted = granted;
    EXPECT_EQ(own_threads(std::vector{rank}, 0), static_cast<int>(granted));
    EXPECT_EQ(own_threads(std::vector(4, rank), 3), std::max(1, static_cast<int>(granted) / 4));
  }
}

// No rank alone has more cores than its control group is granted, but all together may.
TEST(OwnThreads, OfAllRanksAreNoMoreThanAQuotaKeepsBusy) {
  std::vector<CoresOfRank> apart{on(0, 8), on(8, 16), on(16, 24), on(24, 32)};
  for (CoresOfRank& rank : apart) rank.grant({.cpus = 16, .group = 7});
  EXPECT_EQ(threads(apart), (std::vector{4, 4, 4, 4}));
  EXPECT_FALSE(has_own_cores(apart, 0, 8)) << "32 threads on 16 CPUs";
  for (std::size_t r = 0; r < apart.size(); ++r) apart[r].grant({.cpus = 8, .group = r + 1});
  EXPECT_EQ(threads(apart), (std::vector{8, 8, 8, 8})) << "each has a quota of its own";
  apart[1].machine = 2;
  for (CoresOfRank& rank : apart) rank.grant({.cpus = 12, .group = 7});
  EXPECT_EQ(threads(apart), (std::vector{4, 8, 4, 4})) << "of one name on two machines";
}

TEST(OwnThreads, HaveCoresOfTheirOwnOrNot) {
  const std::vector apart{on(0, 8), on(8, 16)}, together(3, on(0, 8));
  EXPECT_TRUE(has_own_cores(apart, 0, 8));
  EXPECT_FALSE(has_own_cores(apart, 0, 9));
  EXPECT_TRUE(has_own_cores(together, 0, 2));
  EXPECT_FALSE(has_own_cores(together, 0, 3)) << "9 threads on 8 cores";
  EXPECT_FALSE(has_own_cores(std::vector(4, on(0, 2)), 0, 1)) << "more ranks than cores";
  CoresOfRank granted = on(0, 64);
  granted.granted = 4;
  EXPECT_TRUE(has_own_cores(std::vector{granted}, 0, 4));
  EXPECT_FALSE(has_own_cores(std::vector{granted}, 0, 5));
}

TEST(OwnThreads, AreOneWhereNoCoreIsKnown) { EXPECT_EQ(own_threads(std::vector(2, CoresOfRank()), 0), 1); }

// Both ranks may run on all cores of this process.
TEST(OwnThreads, OfTwoRanksHereAreHalfOfTheCores) {
  const auto store = ccl::memory_store();
  std::array<int, 2> found = {};
  const auto rank = [&](int r) {
    const auto world =
        ccl::Communicator::create(store, r, 2, {.timeout = std::chrono::minutes(5), .transport = "loopback"});
    found[static_cast<std::size_t>(r)] = compute_threads(*world, -1);
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  const int cores = kernels::count_cores(kernels::affinity());
  EXPECT_EQ(found[0], std::max(1, std::min(cores, kernels::within_quota(cores, kernels::quota_here())) / 2));
  EXPECT_EQ(found[1], found[0]);
}

}  // namespace
}  // namespace trellis::train
