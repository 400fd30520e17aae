// What follows from a machine's sizes, on machines that are not here.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "ccl/descriptor_limit.h"
#include "ccl/process_device.h"
#include "ccl/run/cache_bypass.h"
#include "ccl/transports/libfabric/presence/oversubscription.h"
#include "ccl/transports/segment/mapping.h"
#include "ccl/transports/segment/shared_transport.h"
#include "kernels/dispatch/cpu_quota.h"
#include "net/descriptor.h"

namespace trellis::ccl {
namespace {

using kernels::Stores;

TEST(MachineSizes, StrangersGetAFewDescriptorsOfAny) {
  for (const std::size_t limit : {std::size_t{0}, std::size_t{16}, std::size_t{64}, std::size_t{256}, std::size_t{1024},
                                  std::size_t{1} << 20, std::numeric_limits<std::size_t>::max()}) {
    EXPECT_GE(net::most_silent(limit), 4U) << limit;
    EXPECT_LE(net::most_silent(limit), 64U) << limit;
    EXPECT_GE(most_greeting(limit), 4U) << limit;
    if (limit < 16) continue;
    EXPECT_LE(net::most_silent(limit) + most_greeting(limit), limit / 2) << limit;
  }
  EXPECT_EQ(net::most_silent(256), 8U);
  EXPECT_EQ(most_greeting(256), 64U);
  EXPECT_EQ(most_greeting(std::size_t{1} << 20), 16'384U);
  EXPECT_EQ(most_greeting(RLIM_INFINITY), 16'384U);
}

TEST(MachineSizes, ACudaProgramHasADeviceForEachCpuAndEachRank) {
  for (const int cpus : {1, 2, 256, 1024}) {
    for (const int told : {1, 16, 4096}) EXPECT_EQ(devices_for(told, cpus, 1), told);
    EXPECT_EQ(devices_for(0, cpus, 1), std::max(cpus, 2));
    EXPECT_EQ(devices_for(0, cpus, 2000), 2000);
  }
  EXPECT_EQ(devices_for(0, kernels::within_quota(64, 1.5), 1), 2) << "a container on a large host";
}

// Hardware threads `begin` to `end`.
std::vector<int> threads(int begin, int end) {
  std::vector<int> all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

TEST(MachineSizes, RanksPollWhereEachHasACoreAndTimeForIt) {
  for (const int cores : {1, 2, 256, 1024, 1920})
    for (const int ranks : {1, 2, 4, 256, 1024}) {
      const std::vector<std::vector<int>> anywhere(static_cast<std::size_t>(ranks), threads(0, cores));
      EXPECT_EQ(libfabric::outnumber_cores(anywhere, kernels::no_quota), ranks > cores) << ranks << " on " << cores;
      EXPECT_EQ(libfabric::outnumber_cores(anywhere, 1.5), ranks > 1) << ranks << " on " << cores;
      EXPECT_EQ(patience_for(ranks, kernels::within_quota(cores, 1.5)).spins == 0, ranks > 1);
    }
  EXPECT_FALSE(libfabric::outnumber_cores({threads(0, 4), threads(4, 8)}, kernels::no_quota));
  EXPECT_TRUE(libfabric::outnumber_cores({{3}, {3}}, kernels::no_quota)) << "both on one core of many";
  EXPECT_FALSE(libfabric::outnumber_cores({{3}, {}}, kernels::no_quota)) << "of one it is not told where it runs";
  EXPECT_TRUE(libfabric::outnumber_cores({{}, {}}, 1)) << "but what both are granted";
}

TEST(MachineSizes, PeersWindowsLeaveAddressesToTheProgram) {
  constexpr std::size_t gib = std::size_t{1} << 30, tib = gib << 10;
  for (const std::size_t window : {2 * gib, 4 * tib, 16 * tib}) {
    AddressSpaceBudget room(64 * tib);
    std::size_t taken = 0;
    while (room.take(window)) taken += window;
    EXPECT_EQ(taken, 64 * tib);
    room.give_back(window);
    EXPECT_TRUE(room.take(window));
    EXPECT_FALSE(room.take(1));
  }
  AddressSpaceBudget room(64 * tib);
  EXPECT_FALSE(room.take(std::numeric_limits<std::size_t>::max()));
  EXPECT_FALSE(room.take(64 * tib + 1));
  EXPECT_TRUE(room.take(64 * tib));
}

TEST(MachineSizes, ResultsBypassACacheThatTheyDoNotFit) {
  for (const std::size_t l3 : {std::size_t{1} << 20, std::size_t{600} << 20})
    for (const Rank ranks : {1, 2, 256, 1024}) {
      const std::size_t share = l3 / static_cast<std::size_t>(ranks);
      EXPECT_EQ(stores_beside(share, {l3, ranks}), Stores::cached) << l3 << " bytes, " << ranks;
      EXPECT_EQ(stores_beside(share + 1, {l3, ranks}), Stores::streaming) << l3 << " bytes, " << ranks;
    }
  constexpr std::size_t xeon = std::size_t{300} << 20, small = std::size_t{64} << 10;
  EXPECT_EQ(stores_beside(xeon, {xeon, 1}), Stores::cached);
  EXPECT_EQ(stores_beside(xeon + 1, {xeon, 1}), Stores::streaming);
  EXPECT_EQ(stores_beside(xeon / 512, {xeon, 512}), Stores::cached);
  EXPECT_EQ(stores_beside(xeon / 512 + 1, {xeon, 512}), Stores::streaming);
  EXPECT_EQ(stores_beside(std::size_t{1} << 40, {0, 2}), Stores::cached);  // no such cache is known
  EXPECT_EQ(stores_beside(1, {small, 100'000}), Stores::streaming);        // a share of less than a byte
}

}  // namespace
}  // namespace trellis::ccl
