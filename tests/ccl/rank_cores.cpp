// What ranks know of each other's cores, here and on machines that are not here.
#include "ccl/transports/rank_cores.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <new>
#include <thread>

#include "ccl/run/cache_bypass.h"
#include "ccl/transports/segment/segment.h"
#include "ccl/transports/segment/shared_transport.h"
#include "kernels/dispatch/cpu_quota.h"
#include "kernels/dispatch/sysfs_topology.h"

namespace trellis::ccl {
namespace {

// A segment in which ranks show their cores.
class ShownCores {
 public:
  explicit ShownCores(Rank ranks) : shape_{ranks, 1, 4096} {
    void* const memory = mmap(nullptr, shape_.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    Segment::begin(memory, shape_);
    segment_ = Segment(memory, shape_);
  }
  ~ShownCores() { munmap(segment_.base(), shape_.bytes()); }
  ShownCores(const ShownCores&) = delete;
  ShownCores& operator=(const ShownCores&) = delete;
  const Segment& segment() const { return segment_; }

 private:
  SegmentShape shape_;
  Segment segment_;
};

// Rank 0 may run anywhere and rank 1 on one CPU only, but both read the same places.
TEST(RankCores, AreThoseOfAllRanksWhoeverReads) {
  const ShownCores shown(2);
  const Segment& segment = shown.segment();
  segment.show_cores(0);
  const std::vector<int> cpus = kernels::affinity();
  RankCores seen;
  std::thread([&] {
    ASSERT_TRUE(kernels::stay_on({&cpus.back(), 1}));
    segment.show_cores(1);
    seen = segment.places();
  }).join();
  EXPECT_EQ(segment.places(), seen);
  EXPECT_EQ(seen.cores, kernels::within_quota(kernels::count_cores(cpus), kernels::quota_here()));
  EXPECT_EQ(seen.sockets.at(1), kernels::place_of(cpus.back()).socket);
}

constexpr std::size_t mib = std::size_t{1} << 20;

// What rank r sees: cores of two hardware threads, numbered as Linux does, half of them on each of two sockets, which
// each have an L3 cache. It may run on its part of them if it is pinned, else on all.
AllowedCores seen_on(int cores, Rank r, Rank ranks, bool pinned, double quota, std::uint64_t group = 1) {
  AllowedCores seen{.quota = {quota, group}, .l2_bytes = mib, .l3_bytes = 600 * mib};
  const int each = cores / ranks, begin = pinned ? r * each : 0, end = pinned ? begin + each : cores;
  for (const int second : {0, cores})
    for (int core = begin; core < end; ++core) {
      seen.threads.push_back(core + second);
      const int socket = core >= cores / 2 ? 1 : 0;
      seen.places.push_back({.first_of_core = core, .first_of_l3 = socket * cores / 2, .socket = socket});
    }
  return seen;
}

TEST(RankCores, AreRightOnMachinesOfManyCores) {
  for (const int cores : {2, 256, 512})
    for (const Rank ranks : {1, 2})
      for (const bool pinned : {false, true}) {
        const ShownCores shown(ranks);
        const Segment& segment = shown.segment();
        for (Rank r = 0; r < ranks; ++r) segment.show_cores(r, seen_on(cores, r, ranks, pinned, kernels::no_quota));
        EXPECT_EQ(segment.cores(), 2 * cores);
        EXPECT_EQ(segment.places().cores, cores);
        EXPECT_EQ(segment.places().threads, 2 * cores);
        EXPECT_EQ(segment.places().sockets.back(), pinned && ranks == 2 ? 1 : -1);
        EXPECT_EQ(segment.places().l3_bytes, static_cast<std::size_t>(ranks) * 600 * mib);
      }
}

// 128 cores, eight of them to each of 16 L3 caches.
TEST(RankCores, HaveAllL3CachesThatTheRanksUse) {
  const auto shown = [](Rank ranks, bool pinned) {
    const ShownCores cores(ranks);
    for (Rank r = 0; r < ranks; ++r) {
      AllowedCores seen{.l2_bytes = mib, .l3_bytes = 32 * mib};
      for (int core = pinned ? r : 0; core < (pinned ? r + 1 : 128); ++core) {
        seen.threads.push_back(core);
        seen.places.push_back({.first_of_core = core, .first_of_l3 = core / 8 * 8});
      }
      cores.segment().show_cores(r, seen);
    }
    return cores.segment().places();
  };
  for (const bool pinned : {true, false}) {
    const RankCores all = shown(128, pinned);
    EXPECT_EQ(all.l3_bytes, 512 * mib);
    EXPECT_EQ(all.l3_caches, 16);
    EXPECT_EQ(stores_beside(2 * mib, {all.l3_bytes, 128}), kernels::Stores::cached);
  }
  EXPECT_EQ(shown(8, true).l3_bytes, 32 * mib) << "all on one";
  EXPECT_EQ(shown(2, true).l3_bytes, 32 * mib) << "both on one";
  EXPECT_EQ(shown(2, false).l3_bytes, 64 * mib) << "each uses one at a time";
}

// 4,096 threads do not fit into the set that ranks publish: it then shows fewer, but never none.
TEST(RankCores, AreSomeOnMachinesThatAreLargerThanTheSet) {
  const ShownCores shown(4);
  const Segment& segment = shown.segment();
  for (Rank r = 0; r < 4; ++r) segment.show_cores(r, seen_on(2048, r, 4, true, kernels::no_quota));
  EXPECT_EQ(segment.cores(), 1024);
  EXPECT_GE(patience_for(4, segment.cores()).spins, 1U);
}

TEST(RankCores, AreNoMoreThanAQuotaKeepsBusy) {
  for (const int cores : {64, 512}) {
    const ShownCores shown(4);
    const Segment& segment = shown.segment();
    for (Rank r = 0; r < 4; ++r) segment.show_cores(r, seen_on(cores, r, 4, false, 1.5));
    EXPECT_EQ(segment.cores(), 1);
    EXPECT_EQ(segment.places().cores, 1);
    EXPECT_EQ(patience_for(4, segment.cores()).spins, 0U) << "64 cores, 1.5 CPUs";
    for (Rank r = 0; r < 4; ++r) segment.show_cores(r, seen_on(cores, r, 4, false, cores));
    EXPECT_EQ(segment.cores(), cores);
    EXPECT_EQ(segment.places().cores, cores);
  }
}

// Each rank has cores of its own, but the quota that all share keeps fewer CPUs busy than they have together.
TEST(RankCores, AreNoMoreThanAQuotaKeepsBusyWhereEachRankHasACore) {
  for (const int cores : {16, 64}) {
    const ShownCores shown(16);
    const Segment& segment = shown.segment();
    for (Rank r = 0; r < 16; ++r) segment.show_cores(r, seen_on(cores, r, 16, true, 4));
    EXPECT_EQ(segment.cores(), 4);
    EXPECT_EQ(segment.places().cores, 4);
    EXPECT_EQ(patience_for(16, segment.cores()).spins, 0U) << cores << " cores, 4 CPUs";
  }
}

// Quotas of several control groups add up, and a rank without one has all CPUs that it may run on.
TEST(RankCores, AreWhatAllControlGroupsKeepBusy) {
  const ShownCores shown(4);
  const Segment& segment = shown.segment();
  for (Rank r = 0; r < 4; ++r) segment.show_cores(r, seen_on(64, r, 4, true, 8, r + 1U));
  EXPECT_EQ(segment.cores(), 32);
  EXPECT_EQ(segment.places().cores, 32);
  for (Rank r = 0; r < 4; ++r) segment.show_cores(r, seen_on(64, r, 4, true, 8, r / 2 + 1U));
  EXPECT_EQ(segment.cores(), 16);
  segment.show_cores(0, seen_on(64, 0, 4, true, kernels::no_quota, 0));
  EXPECT_EQ(segment.cores(), 32 + 8 + 8);
  for (Rank r = 0; r < 4; ++r) segment.show_cores(r, seen_on(4, r, 4, false, 4, r + 1U));
  EXPECT_EQ(segment.cores(), 8) << "the CPUs that there are";
}

TEST(RankCores, AreNoneForARankThatSeesNothing) {
  const ShownCores alone(1);
  alone.segment().show_cores(0, {});
  EXPECT_EQ(alone.segment().places().cores, 0);
}

}  // namespace
}  // namespace trellis::ccl
