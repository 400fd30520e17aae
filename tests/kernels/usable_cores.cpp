// placement() keeps to the hardware threads that the process may run on, and takes one of each core. Each call is made
// in a child process, so that this process's affinity stays as it is.
#include "kernels/dispatch/usable_cores.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <string>

#include "kernels/dispatch/cpu.h"
#include "kernels/dispatch/cpu_quota.h"

namespace trellis::kernels {
namespace {

// What placement() says after `prepare`, in a child: the cores, then the three caches' sizes.
std::vector<long> in_child(const std::function<bool()>& prepare) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    std::vector<long> said;
    if (prepare()) {
      const UsableCores p = placement();
      said.assign(p.cores.begin(), p.cores.end());
      for (std::size_t bytes : {p.l1_bytes, p.l2_bytes, p.l3_bytes}) said.push_back(static_cast<long>(bytes));
    }
    const std::size_t size = said.size() * sizeof(long);
    _exit(write(ends[1], said.data(), size) == static_cast<ssize_t>(size) ? 0 : 1);
  }
  ::close(ends[1]);
  std::vector<long> all;
  for (long value = 0; read(ends[0], &value, sizeof value) == sizeof value;) all.push_back(value);
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return all;
}

std::vector<long> cores_on(const std::set<int>& threads) {
  std::vector<long> all = in_child([&] {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (const int t : threads) CPU_SET(t, &mask);
    return sched_setaffinity(0, sizeof mask, &mask) == 0;
  });
  if (all.size() >= 3) all.resize(all.size() - 3);
  return all;
}

std::vector<long> described(const char* machine) {
  return in_child([&] { return setenv("HWLOC_SYNTHETIC", machine, 1) == 0; });
}

std::set<int> allowed_threads() {
  cpu_set_t mask;
  std::set<int> all;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0)
    for (int t = 0; t < CPU_SETSIZE; ++t)
      if (CPU_ISSET(t, &mask)) all.insert(t);
  return all;
}

// What the kernel calls the core's threads: "0,4" or "0-1"; the thread itself when it does not say.
std::string siblings(int thread) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(thread) + "/topology/thread_siblings_list");
  std::string list;
  return std::getline(file, list) ? list : std::to_string(thread);
}

TEST(UsableCores, IsOneThreadOfEachCoreThatMayBeUsed) {
  std::set<std::string> cores;
  for (const int thread : allowed_threads()) cores.insert(siblings(thread));
  const std::vector<long> found = cores_on(allowed_threads());
  EXPECT_EQ(found.size(), cores.size());
  EXPECT_EQ(placement().cores, std::vector<int>(found.begin(), found.end()));
  EXPECT_EQ(cpu().cores, within_quota(static_cast<int>(found.size()), quota_here()));
}

TEST(UsableCores, FollowsAReducedSetOfThreads) {
  std::set<int> some;
  std::set<std::string> cores;
  for (const int thread : allowed_threads()) {
    EXPECT_EQ(cores_on({thread}), std::vector<long>{thread});
    some.insert(thread), cores.insert(siblings(thread));
    EXPECT_EQ(cores_on(some).size(), cores.size());
    if (some.size() == 8) break;
  }
}

// Two packages of two caches of two cores of two threads, whose threads are numbered the way Linux does: first one of
// each core, then the others.
TEST(UsableCores, PutsCoresOfACacheSideBySide) {
  const std::vector<long> found = described(
      "pack:2 l3:2(size=8388608) l2:1(size=1048576) l1:1(size=49152) core:2 pu:2(indexes=0,8,2,10,4,12,6,14,"
      "1,9,3,11,5,13,7,15)");
  EXPECT_EQ(found, (std::vector<long>{0, 2, 4, 6, 1, 3, 5, 7, 49152, 1048576, 8388608}));
}

TEST(UsableCores, CountsThreadsWhereNoCoresAreKnown) {
  EXPECT_EQ(described("pu:3"), (std::vector<long>{0, 1, 2, 0, 0, 0}));
}

}  // namespace
}  // namespace trellis::kernels
