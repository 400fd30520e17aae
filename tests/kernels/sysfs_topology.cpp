// What the system's files say of cores and caches, here and in folders made up for it.
#include "kernels/dispatch/sysfs_topology.h"

#include <gtest/gtest.h>

#include <thread>

#include "kernels/dispatch/cpu.h"
#include "kernels/dispatch/cpu_quota.h"
#include "kernels/dispatch/usable_cores.h"
#include "tests/folder.h"

namespace trellis::kernels {
namespace {

class SystemFiles : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& line) { folder_.put(path, line + "\n"); }
  void write_cache(int thread, int index, const std::string& level, const std::string& type, const std::string& size) {
    const std::string cache = "cpu" + std::to_string(thread) + "/cache/index" + std::to_string(index) + "/";
    write(cache + "level", level), write(cache + "type", type), write(cache + "size", size);
  }
  std::string folder() const { return folder_.path(); }

 private:
  const Folder folder_;
};

TEST_F(SystemFiles, TellTheDataCachesOfAThread) {
  write_cache(3, 0, "1", "Data", "48K");
  write_cache(3, 1, "1", "Instruction", "64K");
  write_cache(3, 2, "2", "Unified", "2M");
  write_cache(3, 3, "3", "Unified", "32768K");
  const CacheSizes sizes = cache_sizes(3, folder());
  EXPECT_EQ(sizes.l1_bytes, 48u << 10);
  EXPECT_EQ(sizes.l2_bytes, 2u << 20);
  EXPECT_EQ(sizes.l3_bytes, 32u << 20);
  EXPECT_EQ(cache_sizes(4, folder()).l1_bytes, 0u) << "a thread of which there are no files";
}

TEST_F(SystemFiles, ThatMakeNoSenseTellNothing) {
  write_cache(0, 0, "1", "Data", "48 kilobytes");
  write_cache(0, 1, "2", "Unified", "");
  write_cache(0, 2, "9", "Unified", "1K");
  const CacheSizes sizes = cache_sizes(0, folder());
  EXPECT_EQ(sizes.l1_bytes, 0u);
  EXPECT_EQ(sizes.l2_bytes, 0u);
  EXPECT_EQ(sizes.l3_bytes, 0u);
}

TEST_F(SystemFiles, CountThreadsOfACoreOnce) {
  for (const int thread : {0, 4}) write("cpu" + std::to_string(thread) + "/topology/thread_siblings_list", "0,4");
  for (const int thread : {1, 5}) write("cpu" + std::to_string(thread) + "/topology/thread_siblings_list", "1,5");
  EXPECT_EQ(count_cores({0, 1, 4, 5}, folder()), 2);
  EXPECT_EQ(count_cores({4, 5}, folder()), 2);
  EXPECT_EQ(count_cores({0, 4}, folder()), 1);
  EXPECT_EQ(count_cores({0, 4, 6, 7}, folder()), 3) << "two of which there are no files";
}

// 256 and 1,024 cores of two threads, the second ones numbered after the first.
TEST_F(SystemFiles, CountCoresOfLargeMachines) {
  for (const int cores : {1, 2, 256, 1024}) {
    std::vector<int> threads;
    for (int t = 0; t < 2 * cores; ++t) {
      const int core = t % cores;
      const std::string siblings = std::to_string(core) + "," + std::to_string(core + cores);
      write("cpu" + std::to_string(t) + "/topology/thread_siblings_list", siblings);
      threads.push_back(t);
    }
    EXPECT_EQ(count_cores(threads, folder()), cores);
    EXPECT_EQ(place_of(2 * cores - 1, folder()).first_of_core, cores - 1);
  }
}

// In a thread of its own, so that this thread's affinity stays as it is.
TEST(Affinity, IsWhatAThreadWasToldToStayOn) {
  std::thread([] {
    const int last = affinity().back();
    EXPECT_TRUE(stay_on({&last, 1}));
    EXPECT_EQ(affinity(), std::vector<int>{last});
    const int absent = 5000;  // of a machine larger than the kernel's usual set
    EXPECT_FALSE(stay_on({&absent, 1}));
    EXPECT_EQ(affinity(), std::vector<int>{last});
  }).join();
}

TEST_F(SystemFiles, TellTheCoreAndTheSocketOfAThread) {
  write("cpu35/topology/thread_siblings_list", "3,35");
  write("cpu35/topology/physical_package_id", "1");
  for (const std::string level : {"1", "2", "3"}) {
    write("cpu35/cache/index" + level + "/level", level);
    write("cpu35/cache/index" + level + "/shared_cpu_list", level == "3" ? "2-3,34-35" : "3,35");
  }
  write("cpu35/cache/index0/level", "1");
  write("cpu4/topology/thread_siblings_list", "nothing");
  write("cpu4/topology/physical_package_id", "-1");
  EXPECT_EQ(place_of(35, folder()).first_of_core, 3);
  EXPECT_EQ(place_of(35, folder()).first_of_l3, 2);
  EXPECT_EQ(place_of(35, folder()).socket, 1);
  for (const int unknown : {4, 5}) {
    EXPECT_EQ(place_of(unknown, folder()).first_of_core, unknown);
    EXPECT_EQ(place_of(unknown, folder()).first_of_l3, 0);
    EXPECT_EQ(place_of(unknown, folder()).socket, 0);
  }
}

TEST(Cpu, IsTheOneThatHwlocFinds) {
  const UsableCores here = placement();
  EXPECT_EQ(cpu().cores, within_quota(static_cast<int>(here.cores.size()), quota_here()));
  EXPECT_EQ(cpu().l3_bytes, here.l3_bytes);
  if (here.l1_bytes != 0) {
    EXPECT_EQ(cpu().l1_bytes, here.l1_bytes);
  }
  if (here.l2_bytes != 0) {
    EXPECT_EQ(cpu().l2_bytes, here.l2_bytes);
  }
}

}  // namespace
}  // namespace trellis::kernels
