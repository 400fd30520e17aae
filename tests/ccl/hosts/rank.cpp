// A rank of the jobs that hosts_test.py starts on several hosts, one on each; the script also cuts their links.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "ccl/communicator.h"
#include "ccl/rendezvous/environment.h"

namespace trellis::ccl {
namespace {

// Sums until another rank is lost.
PeerLost loss_in_sums(Communicator& c) {
  std::vector<float> data(50'000, 1.0F);
  try {
    for (;;) c.all_reduce(data.data(), data.data(), data.size(), kernels::DType::f32);
  } catch (const PeerLost& lost) {
    return lost;
  }
}

std::unique_ptr<Communicator> joined(const LaunchedProcess& l) {
  const Config config = config_from_environment();
  auto c = Communicator::create(store_from_environment(l, Clock::now() + config.timeout), l.rank, l.ranks, config);
  std::printf("joined\n");
  std::fflush(stdout);
  return c;
}

// Sums `data` over the ranks. Rank 0 puts into the last element whether the file exists, so that every rank can return
// that.
bool sum_and_look(Communicator& c, std::vector<std::int32_t>& data, const char* file) {
  std::ranges::fill(data, c.rank() + 1);
  data.back() = c.rank() == 0 && std::filesystem::exists(file) ? 1 : 0;
  c.all_reduce(data.data(), data.data(), data.size(), kernels::DType::i32);
  EXPECT_EQ(data.front(), c.ranks() * (c.ranks() + 1) / 2);
  return data.back() != 0;
}

TEST(Hosts, TheOthersGoOnWithoutTheOneThatIsCutOff) {
  const LaunchedProcess l = launched_from_environment();
  if (l.by.empty()) GTEST_SKIP() << "hosts_test.py starts its ranks";
  const auto c = joined(l);
  const PeerLost lost = loss_in_sums(*c);
  ASSERT_EQ(lost.rank, l.ranks - 1) << lost.what();
  EXPECT_NE(std::string(lost.what()).find(" on host host" + std::to_string(lost.rank)), std::string::npos)
      << lost.what();
  const auto rest = c->shrink(std::array{lost.rank});
  std::int32_t one = 1;
  rest->all_reduce(&one, &one, 1, kernels::DType::i32);
  EXPECT_EQ(one, l.ranks - 1);
}

// While strangers hold connections to its ports, a rank can still open files and split the communicator.
TEST(Hosts, StrangersAtThePortsTakeNoDescriptors) {
  const LaunchedProcess l = launched_from_environment();
  const char* const held = std::getenv("TRELLIS_TEST_HELD");
  if (held == nullptr) GTEST_SKIP() << "strangers_test.py starts its ranks";
  const auto c = joined(l);
  std::vector<std::int32_t> data(1000);
  const auto open_all = [] {
    std::vector<std::ifstream> files(100);
    for (std::ifstream& f : files) f.open("/dev/null");
    EXPECT_TRUE(std::ranges::all_of(files, [](const std::ifstream& f) { return f.is_open(); }));
  };
  while (!sum_and_look(*c, data, held)) open_all();
  for (int i = 0; i < 200; ++i) {
    sum_and_look(*c, data, held);
    open_all();
  }
  for (int i = 0; i < 3; ++i) {
    const auto part = c->split(0, l.rank);
    sum_and_look(*part, data, held);
    open_all();
  }
}

// At 1 Mb/s the data take longer than the timeout to each rank that the root sends them to, and ranks that those serve
// see nothing until then.
TEST(Hosts, ABroadcastTakesAsLongAsItMust) {
  const LaunchedProcess l = launched_from_environment();
  const char* const slowed = std::getenv("TRELLIS_TEST_SLOWED");
  if (slowed == nullptr) GTEST_SKIP() << "slow_links_test.py starts its ranks";
  const auto c = joined(l);
  constexpr Rank root = 1;
  std::vector<std::int32_t> data(100);
  while (!sum_and_look(*c, data, slowed)) {
  }
  data.resize(500'000);
  std::iota(data.begin(), data.end(), l.rank);
  c->broadcast(data.data(), data.data(), data.size(), kernels::DType::i32, root);
  std::int32_t due = root;
  EXPECT_TRUE(std::ranges::all_of(data, [&](std::int32_t one) { return one == due++; }));
}

// Rank 1 receives from rank 0 over a slow link, for longer than the timeout, and then serves rank 2, which sees nothing
// of that. Ranks 0 and 1 use the same communicator, and then one of their own.
TEST(Hosts, WhoWaitsBehindASlowReceiveIsServed) {
  const LaunchedProcess l = launched_from_environment();
  const char* const slowed = std::getenv("TRELLIS_TEST_SLOWED");
  if (slowed == nullptr) GTEST_SKIP() << "slow_links_test.py starts its ranks";
  const auto c = joined(l);
  const auto pair = c->split(l.rank < 2 ? 0 : 1, l.rank);
  std::vector<std::int32_t> data(100);
  while (!sum_and_look(*c, data, slowed)) {
  }
  constexpr std::size_t large = 300'000;
  for (Communicator* const between : {c.get(), pair.get()}) {
    data.assign(large, l.rank);
    std::int32_t word = l.rank;
    if (l.rank == 0) between->send(data.data(), large, kernels::DType::i32, 1);
    if (l.rank == 1) {
      between->recv(data.data(), large, kernels::DType::i32, 0);
      EXPECT_EQ(std::ranges::count(data, 0), static_cast<std::ptrdiff_t>(large));
      c->send(&word, 1, kernels::DType::i32, 2);
    }
    if (l.rank != 2) continue;
    c->recv(&word, 1, kernels::DType::i32, 1);
    EXPECT_EQ(word, 1);
  }
}

TEST(Hosts, ADivisionTakesUpTheRailThatWasLeft) {
  const LaunchedProcess l = launched_from_environment();
  const char* const mended = std::getenv("TRELLIS_TEST_MENDED");
  if (mended == nullptr) GTEST_SKIP() << "hosts_test.py starts its ranks";
  const auto c = joined(l);
  std::vector<std::int32_t> data(std::size_t{1} << 18);
  while (!sum_and_look(*c, data, mended)) {
  }
  const auto again = c->split(0, l.rank);
  for (int i = 0; i < 50; ++i) sum_and_look(*again, data, mended);
}

}  // namespace
}  // namespace trellis::ccl
