// The granted CPU time, and how many threads it keeps busy, from made-up system files of machines and containers that
// are not here.
#include "kernels/dispatch/cpu_quota.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "kernels/dispatch/parallel.h"
#include "kernels/dispatch/useful_threads.h"
#include "tests/folder.h"

namespace trellis::kernels {
namespace {

class CpuQuota : public testing::Test {
 protected:
  void group(const std::string& lines) { folder_.put("proc/self/cgroup", lines); }
  void put(const std::string& path, const std::string& line) { folder_.put("groups/" + path, line + "\n"); }
  double found() const { return granted().cpus; }
  CgroupCpuQuota granted() const { return cpu_quota(folder_.path() / "proc", folder_.path() / "groups"); }

 private:
  const Folder folder_;
};

TEST_F(CpuQuota, IsNoneWithoutFilesAndWithFilesThatMakeNoSense) {
  EXPECT_EQ(found(), no_quota);
  group("nonsense\n0::\n:::\n");
  for (const char* line :
       {"", "max", "max 100000", "much", "150000", "150000 0", "0 100000", "150000 much", "-1 100000"}) {
    put("cpu.max", line);
    EXPECT_EQ(found(), no_quota) << line;
  }
}

TEST_F(CpuQuota, IsThatOfAContainer) {
  group("0::/\n");
  put("cpu.max", "150000 100000");
  EXPECT_EQ(found(), 1.5);
  put("cpu.max", "6400000 100000");
  EXPECT_EQ(found(), 64);
  put("cpu.max", "5000 100000");
  EXPECT_EQ(found(), 0.05);
}

TEST_F(CpuQuota, IsTheLeastOfAGroupAndThoseAroundIt) {
  group("0::/jobs/one\n");
  put("jobs/one/cpu.max", "800000 100000");
  EXPECT_EQ(found(), 8);
  put("jobs/cpu.max", "100000 50000");
  EXPECT_EQ(found(), 2);
  put("jobs/two/cpu.max", "100000 100000");
  EXPECT_EQ(found(), 2) << "another group's";
}

TEST_F(CpuQuota, FollowsTheFirstVersionOfGroups) {
  group("9:name=systemd:/\n3:cpu,cpuacct:/docker/abc\n0::/\n");
  put("cpu,cpuacct/cpu.cfs_quota_us", "-1");  // the container's, seen from inside
  put("cpu,cpuacct/cpu.cfs_period_us", "100000");
  EXPECT_EQ(found(), no_quota);
  put("cpu,cpuacct/cpu.cfs_quota_us", "250000");
  EXPECT_EQ(found(), 2.5);
  put("cpu/docker/abc/cpu.cfs_quota_us", "50000");  // mounted by one name alone
  put("cpu/docker/abc/cpu.cfs_period_us", "100000");
  EXPECT_EQ(found(), 0.5);
}

// The processes of one pod share the pod's limit. A limit of a container, or of a service, is for that one alone.
TEST_F(CpuQuota, IsSharedByProcessesOfTheGroupThatGrantsIt) {
  group("0::/pod/one\n");
  EXPECT_EQ(granted().group, 0U) << "no limit";
  put("pod/one/cpu.max", "400000 100000");
  put("pod/two/cpu.max", "400000 100000");
  const std::uint64_t one = granted().group;
  EXPECT_NE(one, 0U);
  group("0::/pod/two\n");
  EXPECT_NE(granted().group, one);
  put("pod/cpu.max", "400000 100000");
  const std::uint64_t pod = granted().group;
  group("0::/pod/one\n");
  EXPECT_EQ(granted().group, pod) << "what the pod is granted is less than that of both";
  put("pod/one/cpu.max", "300000 100000");
  EXPECT_EQ(granted().group, one);
}

TEST_F(CpuQuota, OfThisMachineIsSome) {
  EXPECT_GT(quota_here(), 0);
  EXPECT_EQ(quota_here(), cpu_quota().cpus);
}

struct Granted {
  int cores;
  double quota;
  int busy;
};

TEST(WithinQuota, IsWholeCoresAndAtLeastOne) {
  for (const Granted& g : std::initializer_list<Granted>{{1, no_quota, 1},
                                                         {2, no_quota, 2},
                                                         {256, no_quota, 256},
                                                         {1024, no_quota, 1024},
                                                         {0, no_quota, 1},
                                                         {64, 1.5, 1},
                                                         {64, 0.05, 1},
                                                         {1, 0.5, 1},
                                                         {2, 2, 2},
                                                         {2, 1.99, 1},
                                                         {256, 16.7, 16},
                                                         {1024, 1e12, 1024},
                                                         {0, 0.5, 1}})
    EXPECT_EQ(within_quota(g.cores, g.quota), g.busy) << g.cores << " cores, " << g.quota;
}

TEST(UsefulThreads, AreAsManyAsWantedWhileEachHasAPart) {
  for (const int cores : {1, 2, 256, 1024})
    for (const std::size_t parts :
         {std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{1000}, std::size_t{1} << 40}) {
      for (const int wanted : {-1, 1, 2, 7, 1024}) {
        const int useful = useful_threads(wanted, parts, cores);
        EXPECT_EQ(static_cast<std::size_t>(useful), std::min(static_cast<std::size_t>(std::max(wanted, 1)), parts));
      }
      EXPECT_EQ(static_cast<std::size_t>(useful_threads(0, parts, cores)),
                std::min(static_cast<std::size_t>(cores), parts));
    }
}

// More threads than this machine has cores: every part is done once, whatever the number of threads.
TEST(UsefulThreads, DoEveryPartOnce) {
  for (const int threads : {2, 3, 16, 64})
    for (const std::size_t parts : {1U, 2U, 63U, 65U, 1024U}) {
      std::vector<std::atomic<int>> done(parts);
      parallel(threads, parts, [&](std::size_t from, std::size_t to) {
        for (; from < to; ++from) ++done[from];
      });
      EXPECT_EQ(std::ranges::count_if(done, [](const auto& times) { return times == 1; }),
                static_cast<std::ptrdiff_t>(parts))
          << threads << " threads";
    }
}

}  // namespace
}  // namespace trellis::kernels
