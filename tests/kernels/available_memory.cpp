// The available memory, from made-up system files of machines and containers that are not here.
#include "kernels/dispatch/available_memory.h"

#include <gtest/gtest.h>

#include "tests/folder.h"

namespace trellis::kernels {
namespace {

constexpr std::uint64_t mib = 1 << 20, unknown = ~std::uint64_t{0};

class AvailableMemory : public testing::Test {
 protected:
  void meminfo(const std::string& text) { folder_.put("proc/meminfo", text); }
  void group(const std::string& line) { folder_.put("proc/self/cgroup", line + "\n"); }
  void put(const std::string& path, const std::string& text) { folder_.put("groups/" + path, text); }
  std::uint64_t total() const { return total_memory(folder_.path() / "proc", folder_.path() / "groups"); }
  std::uint64_t found() const { return available_memory(folder_.path() / "proc", folder_.path() / "groups"); }

 private:
  const Folder folder_;
};

TEST_F(AvailableMemory, IsTheMachinesWhereNoGroupLimitsIt) {
  meminfo("MemTotal:       24000000 kB\nMemFree:         1000000 kB\nMemAvailable:    2048 kB\n");
  EXPECT_EQ(found(), 2 * mib);
}

TEST_F(AvailableMemory, IsUnknownWithoutFilesAndWithFilesThatMakeNoSense) {
  EXPECT_EQ(found(), unknown);
  meminfo("MemAvailable: much\n");
  group("nonsense");
  put("memory.max", "");
  EXPECT_EQ(found(), unknown);
}

TEST_F(AvailableMemory, IsWhatAContainersLimitLeaves) {
  meminfo("MemAvailable: 20971520 kB\n");
  group("0::/");
  put("memory.max", std::to_string(512 * mib) + "\n");
  put("memory.current", std::to_string(300 * mib) + "\n");
  EXPECT_EQ(found(), 212 * mib);
  put("memory.stat", "anon 5\ninactive_file " + std::to_string(100 * mib) + "\n");
  EXPECT_EQ(found(), 312 * mib) << "files that were read are given back";
  put("memory.current", std::to_string(700 * mib) + "\n");
  EXPECT_EQ(found(), 0u) << "more in use than allowed";
  put("memory.max", "max\n");
  EXPECT_EQ(found(), 20480 * mib);
}

TEST_F(AvailableMemory, IsTheLeastOfAGroupAndThoseAroundIt) {
  meminfo("MemAvailable: 20971520 kB\n");
  group("0::/jobs/one");
  put("jobs/one/memory.max", std::to_string(800 * mib));
  put("jobs/one/memory.current", std::to_string(100 * mib));
  EXPECT_EQ(found(), 700 * mib);
  put("jobs/memory.max", std::to_string(900 * mib));
  put("jobs/memory.current", std::to_string(850 * mib));
  EXPECT_EQ(found(), 50 * mib);
}

TEST_F(AvailableMemory, FollowsTheFirstVersionOfGroups) {
  meminfo("MemAvailable: 20971520 kB\n");
  group("4:memory:/docker/abc");
  put("memory/memory.limit_in_bytes", std::to_string(256 * mib));  // the container's, seen from inside
  put("memory/memory.usage_in_bytes", std::to_string(56 * mib));
  put("memory/memory.stat", "total_inactive_file " + std::to_string(6 * mib) + "\n");
  EXPECT_EQ(found(), 206 * mib);
}

TEST_F(AvailableMemory, IsAtMostAllThereIs) {
  for (const std::uint64_t machine : {512 * mib, 4 * mib * mib}) {
    meminfo("MemTotal: " + std::to_string(machine >> 10) + " kB\nMemFree: 1 kB\nMemAvailable: 2 kB\n");
    EXPECT_EQ(total(), machine);
    group("0::/jobs/one");
    put("jobs/memory.max", std::to_string(256 * mib));
    put("jobs/one/memory.max", "max\n");
    EXPECT_EQ(total(), 256 * mib) << "a container's limit";
    put("jobs/memory.max", std::to_string(std::uint64_t{1} << 62));  // so large that it is no limit
    EXPECT_EQ(total(), machine);
    group("4:memory:/docker/abc");
    put("memory/memory.limit_in_bytes", std::to_string(128 * mib));
    EXPECT_EQ(total(), 128 * mib) << "the first version";
    put("memory/memory.limit_in_bytes", "9223372036854771712");
    EXPECT_EQ(total(), machine);
  }
}

TEST_F(AvailableMemory, WithoutFilesAllThereIsIsTheSystems) {
  EXPECT_GT(total(), mib);
  EXPECT_LT(total(), unknown);
}

TEST_F(AvailableMemory, OfThisMachineIsSome) { EXPECT_GT(available_memory(), 0u); }

}  // namespace
}  // namespace trellis::kernels
