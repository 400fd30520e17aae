// Communicators with too many ranks to connect each to all: how many connections a rank has, and who learns what.
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "ccl/transports/libfabric/wire/provider.h"
#include "tests/ccl/ranks/cases.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

constexpr Rank many = 64;
// Of 64 ranks, each has 11 neighbours for control, and a few peers for data. A pair may have a connection each way.
constexpr int most_connections = 2 * (11 + 2 * 6) + 6;

int sockets() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry, gone).string().starts_with("socket:") ? 1 : 0;
  }
  return count;
}

void expect_few(const char* when, int before) {
  if (const int now = sockets() - before; now > most_connections)
    throw std::runtime_error(fmt::format("{} connections {}: expected at most {}", now, when, most_connections));
}

void add(Communicator& c, std::size_t count) {
  std::vector<std::int32_t> data(count, 1);
  c.all_reduce(data.data(), data.data(), count, kernels::DType::i32);
  if (data.front() != c.ranks() || data.back() != c.ranks()) throw std::runtime_error("the sum");
}

TEST(LargeFabric, EachRankConnectsToFewOthers) {
  if (!libfabric::library_absence().empty()) GTEST_SKIP() << libfabric::library_absence();
  const int before = sockets();
  EXPECT_EQ(run_processes(many,
                          [&](Communicator& c) {
                            for (int i = 0; i < 3; ++i) add(c, 5000);
                            expect_few("after three sums", before);
                            const auto eighth = c.split(c.rank() / 8, c.rank());
                            add(*eighth, 1);
                            expect_few("after a split", before);
                            c.finalize();
                            expect_few("after its end", before);
                          },
                          {.timeout = 180s, .algorithm = "all_reduce=ring", .transport = "libfabric"}),
            "");
}

TEST(LargeFabric, AnAbortComesToAllOverFewConnections) {
  if (!libfabric::library_absence().empty()) GTEST_SKIP() << libfabric::library_absence();
  const int before = sockets();
  EXPECT_EQ(run_processes(many,
                          [&](Communicator& c) {
                            try {
                              add(c, 100);
                              if (c.rank() == 41) c.abort();
                              for (;;) add(c, 100);
                            } catch (const Aborted& aborted) {
                              if (aborted.by != 41) throw;
                            }
                            expect_few("after an abort", before);
                          },
                          {.timeout = 180s, .transport = "libfabric"}),
            "");
}

// Two ranks to a host: most learn only from others which one has died.
TEST(LargeFabric, ARankThatDiesIsNamedByAllOthers) {
  if (!libfabric::library_absence().empty()) GTEST_SKIP() << libfabric::library_absence();
  const int before = sockets();
  EXPECT_EQ(run_ranks("hybrid", many,
                      [&](Communicator& c) {
                        try {
                          add(c, 100);
                          if (c.rank() == 32) kill(getpid(), SIGKILL);
                          for (;;) add(c, 100);
                        } catch (const PeerLost& lost) {
                          if (lost.rank != 32) throw;
                        }
                        expect_few("after a loss", before);
                        const auto rest = c.shrink(std::array{32});
                        add(*rest, 1);
                      },
                      {.timeout = 180s, .algorithm = "all_reduce=ring"}),
            "rank 32: signal 9\n");
}

// Each rank needs the addresses of all others at once, and connects to all of them.
TEST(LargeFabric, AllPairsMeetInOneOperation) {
  if (!libfabric::library_absence().empty()) GTEST_SKIP() << libfabric::library_absence();
  for (const char* const transport : {"libfabric", "hybrid"})
    EXPECT_EQ(run_ranks(transport, many,
                        [&](Communicator& c) {
                          for (int i = 0; i < 3; ++i) add(*c.split(0, c.rank()), 1);
                        },
                        {.timeout = 60s, .algorithm = "all_reduce=mesh"}),
              "");
}

}  // namespace
}  // namespace trellis::ccl

#endif
