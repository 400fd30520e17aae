// What the system's files say of cores and caches, here and in folders made up for it.
#include "kernels/dispatch/system_files.h"

#include <gtest/gtest.h>

#include "kernels/dispatch/cpu.h"
#include "kernels/dispatch/placement.h"
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

TEST_F(SystemFiles, TellTheCoreAndTheSocketOfAThread) {
  write("cpu35/topology/thread_siblings_list", "3,35");
  write("cpu35/topology/physical_package_id", "1");
  write("cpu4/topology/thread_siblings_list", "nothing");
  write("cpu4/topology/physical_package_id", "-1");
  EXPECT_EQ(place_of(35, folder()).first_of_core, 3);
  EXPECT_EQ(place_of(35, folder()).socket, 1);
  for (const int unknown : {4, 5}) {
    EXPECT_EQ(place_of(unknown, folder()).first_of_core, unknown);
    EXPECT_EQ(place_of(unknown, folder()).socket, 0);
  }
}

TEST(Cpu, IsTheOneThatHwlocFinds) {
  const Placement here = placement();
  EXPECT_EQ(static_cast<std::size_t>(cpu().cores), here.cores.size());
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
