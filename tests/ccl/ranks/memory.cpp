// The memory that a communicator holds, and what it reports of that.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/ccl/ranks/cases.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

TEST(Memory, AnIdleRankHoldsLittleAndAllThatIsUsedIsCounted) {
  constexpr std::size_t elements = std::size_t{1} << 20;
  for (const std::string& transport : usable_transports()) {
    const std::size_t most_idle = std::size_t{across_hosts(transport) ? 2048U : 256U}
                                  << 10;  // includes packets of ranks that are ahead
    EXPECT_EQ(run_ranks(transport, 8,
                        [&](Communicator& c) {
                          std::vector<float> data(elements, 1);
                          c.all_reduce(data.data(), data.data(), 2, kernels::DType::f32);
                          const std::size_t idle = c.memory_bytes();
                          if (idle == 0 || idle >= most_idle)
                            throw std::runtime_error(fmt::format("{} bytes after a small operation", idle));
                          c.barrier();
                          c.all_reduce(data.data(), data.data(), elements, kernels::DType::f32);
                          c.barrier();
                          // The large operation has used slots or scratch, which must be counted.
                          if (c.memory_bytes() < idle + elements)
                            throw std::runtime_error(
                                fmt::format("{} bytes after one, {} after a large one", idle, c.memory_bytes()));
                        },
                        {.algorithm = "all_reduce=mesh", .single_copy = false}),
              "");
  }
}

TEST(Memory, CommunicatorsOfADeviceTakeTurnsWithScratch) {
  constexpr std::size_t elements = std::size_t{1} << 18;
  EXPECT_EQ(run_ranks("shared_memory", 4,
                      [](Communicator& c) {
                        std::vector<float> data(elements, 1);
                        const auto other = c.split(0, c.rank());
                        const auto needs = [&](Communicator& one) {
                          one.all_reduce(data.data(), data.data(), elements, kernels::DType::f32);
                          return c.device().allocated_bytes();
                        };
                        const std::size_t first = needs(c), second = needs(*other);
                        if (first == 0 || second != first)
                          throw std::runtime_error(fmt::format("{} bytes for one, {} for two", first, second));
                      },
                      {.algorithm = "all_reduce=mesh", .single_copy = false}),
            "");
}

// Children must not take the parent's pages, which they have inherited, for their own.
TEST(Memory, AForkedProcessHasADeviceOfItsOwn) {
  constexpr std::size_t elements = std::size_t{1} << 18;
  const auto store = memory_store();
  const auto held = Communicator::create(store, 0, 1, {.transport = "loopback"});
  auto* const mine = static_cast<float*>(held->device().allocate(elements * sizeof(float)));
  std::fill_n(mine, elements, 7.0F);
  EXPECT_EQ(run_ranks("shared_memory", 4,
                      [](Communicator& c) {
                        std::vector<float> data(elements, static_cast<float>(c.rank()));
                        for (int i = 0; i < 3; ++i) {
                          std::ranges::fill(data, static_cast<float>(c.rank()));
                          c.all_reduce(data.data(), data.data(), elements, kernels::DType::f32);
                          for (float x : data)
                            if (x != 6) throw std::runtime_error(fmt::format("a sum of {}, not 6", x));
                        }
                      },
                      {.algorithm = "all_reduce=mesh", .single_copy = false}),
            "");
  EXPECT_EQ(std::ranges::count(mine, mine + elements, 7.0F), elements);
  held->device().release(mine);
}

// Each communicator has a thread, and the device's free memory passes from one to another.
TEST(Memory, CommunicatorsInThreadsShareRooms) {
  constexpr std::size_t most = std::size_t{1} << 17;
  constexpr int threads = 4, turns = sanitized ? 10 : 40;
  EXPECT_EQ(run_ranks("shared_memory", 3,
                      [](Communicator& c) {
                        std::vector<std::unique_ptr<Communicator>> children;
                        for (int t = 0; t < threads; ++t) children.push_back(c.split(0, c.rank()));
                        std::atomic<int> wrong = 0;
                        std::vector<std::thread> running;
                        for (int t = 0; t < threads; ++t)
                          running.emplace_back([&, t] {
                            std::vector<float> data(most);
                            for (int turn = 0; turn < turns; ++turn) {
                              const std::size_t count = most >> (turn * 7 + t) % 4;
                              const float mine = static_cast<float>((c.rank() + 1) * (t + 1) + turn);
                              const float sum = static_cast<float>(6 * (t + 1) + 3 * turn);
                              std::fill_n(data.begin(), count, mine);
                              children[static_cast<std::size_t>(t)]->all_reduce(data.data(), data.data(), count,
                                                                                kernels::DType::f32);
                              wrong += std::count(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(count),
                                                  sum) != static_cast<std::ptrdiff_t>(count);
                            }
                          });
                        for (std::thread& t : running) t.join();
                        if (wrong != 0) throw std::runtime_error(fmt::format("{} wrong sums", wrong.load()));
                      },
                      {.algorithm = "all_reduce=mesh", .single_copy = false}),
            "");
}

// Peers can read exposed memory except for its ends, so data are not copied to scratch for them first.
TEST(Memory, ExposedMemoryIsNotShownOnceMore) {
  constexpr std::size_t bytes = std::size_t{4} << 20;
  EXPECT_EQ(run_ranks("shared_memory", 4,
                      [](Communicator& c) {
                        std::vector<std::byte> memory(bytes + 64);
                        auto* const data = reinterpret_cast<float*>(memory.data() + 16);
                        const auto exposed = c.expose(data, bytes);
                        const std::size_t before = c.device().allocated_bytes();
                        c.all_reduce(data, data, bytes / sizeof(float), kernels::DType::f32);
                        if (const std::size_t more = c.device().allocated_bytes() - before; more >= bytes / 2)
                          throw std::runtime_error(fmt::format("{} bytes of scratch", more));
                      },
                      {.algorithm = "all_reduce=halving_doubling", .single_copy = false}),
            "");
}

// DNS allows 253 characters, and names of pods are long.
TEST(Memory, IsSharedByRanksOfAHostWithALongName) {
  const auto adds = [](Communicator& c) {
    float sum = 1;
    c.all_reduce(&sum, &sum, 1, kernels::DType::f32);
    if (sum != 2) throw std::runtime_error(fmt::format("a sum of {}", sum));
  };
  for (const std::string& transport : between_processes())
    for (const std::size_t letters : {1, 253})
      EXPECT_EQ(run_ranks(transport, 2, adds, {.fabric = {.host = std::string(letters, 'h')}}), "")
          << transport << ", " << letters << " letters";
}

TEST(Memory, LargeBuffersCanBeReadWhereTheyLie) {
  constexpr std::size_t elements = std::size_t{1} << 18;
  EXPECT_EQ(run_ranks("shared_memory", 2,
                      [](Communicator& c) {
                        std::vector<float> in(elements), out(elements);
                        for (std::size_t i = 0; i < elements; ++i) in[i] = static_cast<float>(i % 1000 + 1);
                        c.all_reduce(in.data(), out.data(), elements, kernels::DType::f32);
                        for (std::size_t i = 0; i < elements; ++i)
                          if (out[i] != 2 * in[i])
                            throw std::runtime_error(fmt::format("element {} is {}, not {}", i, out[i], 2 * in[i]));
                      },
                      {.algorithm = "all_reduce=mesh", .single_copy = true}),
            "");
}

// Makes this thread's calls of the system by this number fail for lack of permission.
bool forbid(std::uint32_t call) {
  sock_filter filter[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                          {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call},
                          {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
                          {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog program{std::size(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// As where only descendants may be traced (ptrace_scope 1): a parent may read its child's memory, and the child may not
// read its parent's.
TEST(Memory, ThatOneRankAloneCannotReadGoesThroughSlots) {
  constexpr std::size_t elements = std::size_t{1} << 18;
  const std::string said = run_ranks("shared_memory", 2,
                                     [](Communicator& c) {
                                       if (c.rank() == 1 && !forbid(__NR_process_vm_readv))
                                         throw std::runtime_error("no filter");
                                       const auto part = c.split(0, c.rank());
                                       std::vector<float> in(elements, static_cast<float>(c.rank() + 1)), out(elements);
                                       for (int i = 0; i < 3; ++i) {
                                         part->all_reduce(in.data(), out.data(), elements, kernels::DType::f32);
                                         if (out.front() != 3 || out.back() != 3)
                                           throw std::runtime_error(fmt::format("a sum of {}", out.front()));
                                       }
                                     },
                                     {.algorithm = "all_reduce=mesh", .single_copy = true});
  if (said.find("no filter") != std::string::npos) GTEST_SKIP() << "the system takes no filter of its calls";
  EXPECT_EQ(said, "");
}

// The bytes of slots that an operation on this memory has begun to use. Throws when its result is wrong.
std::size_t slots_for(Communicator& c, float* data, std::size_t elements) {
  c.barrier();
  const std::size_t before = c.memory_bytes();
  c.barrier();
  for (std::size_t i = 0; i < elements; ++i) data[i] = c.rank() == 0 ? static_cast<float>(i % 1000) : -1.0F;
  c.broadcast(data, data, elements, kernels::DType::f32, 0);
  for (std::size_t i = 0; i < elements; ++i)
    if (data[i] != static_cast<float>(i % 1000))
      throw std::runtime_error(fmt::format("element {} of {} is {}", i, elements, data[i]));
  c.barrier();
  return (c.memory_bytes() - before) * static_cast<std::size_t>(c.ranks());
}

// Messages begin and end within pages that are only partly in the window.
TEST(Memory, ExposedMemoryIsReadWhereItLies) {
  constexpr std::size_t elements = std::size_t{1} << 20, page = 4096;
  const Config config{.algorithm = "broadcast=direct"};
  EXPECT_EQ(run_ranks(
                "shared_memory", 2,
                [](Communicator& c) {
                  std::vector<float> memory(elements);
                  auto exposed = c.expose(memory.data(), elements * sizeof(float));
                  if (exposed->readable_bytes() < elements * sizeof(float) - 2 * page)
                    throw std::runtime_error(fmt::format("{} bytes readable", exposed->readable_bytes()));
                  const std::size_t most = 16 * page;  // the ends of messages, some of them in each slot
                  for (const std::size_t count : {elements, elements - 1001, std::size_t{9000}, std::size_t{1500}})
                    for (const std::size_t first : {0, 1, 777})
                      if (const std::size_t used = slots_for(c, memory.data() + first, count - first); used > most)
                        throw std::runtime_error(fmt::format("{} bytes of slots for {}", used, count));
                  exposed.reset();
                  if (const std::size_t used = slots_for(c, memory.data(), elements); used <= most)
                    throw std::runtime_error(fmt::format("{} bytes of slots when it was over", used));
                },
                config),
            "");
}

// The pages of address space that this process has reserved.
std::size_t address_space() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// Rank 1 may reserve little more address space (ulimit -v): it reads memory that it can't map.
TEST(Memory, DeviceMemoryThatDoesNotFitTheAddressSpaceIsRead) {
  constexpr std::size_t elements = std::size_t{1} << 18, spare = std::size_t{64} << 20;
  for (const char* const algorithm : {"all_reduce=mesh", "all_reduce=ring"})
    EXPECT_EQ(run_ranks("shared_memory", 2,
                        [](Communicator& c) {
                          auto* const data = static_cast<float*>(c.device().allocate(elements * sizeof(float)));
                          for (std::size_t i = 0; i < elements; ++i) data[i] = static_cast<float>(i % 1000 + 1);
                          rlimit limit = {};
                          getrlimit(RLIMIT_AS, &limit);
                          limit.rlim_cur = address_space() + spare;
                          if (c.rank() == 1 && c.device().window().bytes < limit.rlim_cur - address_space())
                            throw std::runtime_error("the window fits all the same");
                          if (c.rank() == 1 && setrlimit(RLIMIT_AS, &limit) != 0)
                            throw std::runtime_error("the limit can't be set");
                          c.all_reduce(data, data, elements, kernels::DType::f32);
                          for (std::size_t i = 0; i < elements; ++i)
                            if (data[i] != 2 * static_cast<float>(i % 1000 + 1))
                              throw std::runtime_error(fmt::format("element {} is {}", i, data[i]));
                          c.device().release(data);
                        },
                        {.algorithm = algorithm}),
              "");
}

TEST(Memory, WithoutProcNobodyIsSaidToHaveDied) {
  const std::string said =
      run_ranks("shared_memory", 2,
                [](Communicator& c) {
                  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                      mount("none", "/proc", "tmpfs", 0, nullptr) != 0)
                    throw std::runtime_error("no namespace");
                  c.split(0, c.rank());
                },
                {.timeout = std::chrono::seconds(20)});
  if (said.find("no namespace") != std::string::npos) GTEST_SKIP() << "no mount namespace may be made here";
  EXPECT_NE(said.find("/proc is not mounted"), std::string::npos) << said;
  EXPECT_EQ(said.find("died"), std::string::npos) << said;
}

TEST(Memory, AllMemoryIsReadableBetweenThreads) {
  EXPECT_EQ(run_ranks("loopback", 2,
                      [](Communicator& c) {
                        float on_the_stack[100];
                        if (c.expose(on_the_stack, sizeof on_the_stack)->readable_bytes() != sizeof on_the_stack)
                          throw std::runtime_error("not all is readable");
                        for (const auto& [data, bytes] :
                             {std::pair<void*, std::size_t>{nullptr, 8}, {on_the_stack, 0}, {on_the_stack, SIZE_MAX}}) {
                          try {
                            c.expose(data, bytes);
                          } catch (const std::invalid_argument&) {
                            continue;
                          }
                          throw std::runtime_error(fmt::format("{} bytes at {} were exposed", bytes, data));
                        }
                      }),
            "");
}

// Containers may forbid to say where memory is to lie.
bool may_be_placed() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const unsigned long first_node = 1;
  const bool placed = syscall(SYS_mbind, memory, page, MPOL_PREFERRED, &first_node, sizeof(first_node) * 8, 0) == 0;
  munmap(memory, page);
  return placed;
}

TEST(Memory, SlotsLieWithTheirReader) {
  if (!std::ifstream("/proc/self/numa_maps")) GTEST_SKIP() << "this kernel knows no NUMA nodes";
  if (!may_be_placed()) GTEST_SKIP() << "mbind is refused";
  EXPECT_EQ(run_ranks("shared_memory", 2,
                      [](Communicator& c) {
                        c.barrier();
                        std::ifstream maps("/proc/self/numa_maps");
                        int bound = 0;
                        for (std::string line; std::getline(maps, line);)
                          bound += line.find("trellis-segment") != std::string::npos &&
                                   line.find(" prefer") != std::string::npos;
                        c.barrier();
                        if (bound == 0) throw std::runtime_error("no part of the segment is bound");
                      }),
            "");
}

}  // namespace
}  // namespace trellis::ccl
