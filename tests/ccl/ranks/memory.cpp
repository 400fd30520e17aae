// What a communicator holds, and what it says of it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

TEST(Memory, AnIdleRankHoldsLittleAndAllThatIsUsedIsCounted) {
  constexpr std::size_t most_idle = std::size_t{256} << 10, elements = std::size_t{1} << 20;
  for (const char* transport : {"loopback", "shared_memory"})
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
                          // Slots were used, or scratch was.
                          if (c.memory_bytes() < idle + elements)
                            throw std::runtime_error(
                                fmt::format("{} bytes after one, {} after a large one", idle, c.memory_bytes()));
                        },
                        {.algorithm = "all_reduce=mesh", .single_copy = false}),
              "");
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

TEST(Memory, SlotsLieWithTheirReader) {
  if (!std::ifstream("/proc/self/numa_maps")) GTEST_SKIP() << "this kernel knows no NUMA nodes";
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
