// Bits that change on the way between ranks, and messages that come twice: control is not affected, and with checksums
// changed data are reported as an error.
#if __has_include(<rdma/fabric.h>)

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "ccl/store.h"
#include "ccl/transports/libfabric/wire/library.h"
#include "tests/ccl/ranks/run.h"
#include "tests/faults/injected_faults.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;
using libfabric::InjectedFaults;

constexpr std::size_t small = 13, large = 70'001;

// Sums and gathers the ranks' numbers, small and large. Returns how many results are wrong.
int wrong_results(Communicator& c, std::size_t count, int rounds) {
  int wrong = 0;
  const auto ranks = static_cast<std::size_t>(c.ranks());
  for (int i = 0; i < rounds; ++i) {
    std::vector<std::int32_t> sum(count, c.rank() + i), all(count * ranks);
    c.all_reduce(sum.data(), sum.data(), count, DType::i32);
    const std::int32_t due = c.ranks() * (c.ranks() - 1) / 2 + c.ranks() * i;
    wrong += std::ranges::count(sum, due) != static_cast<std::ptrdiff_t>(count) ? 1 : 0;
    const std::vector<std::int32_t> own(count, c.rank() + i);
    c.all_gather(own.data(), all.data(), count, DType::i32);
    for (Rank r = 0; r < c.ranks(); ++r)
      wrong += std::count(all.begin() + static_cast<std::ptrdiff_t>(count) * r,
                          all.begin() + static_cast<std::ptrdiff_t>(count) * (r + 1),
                          r + i) != static_cast<std::ptrdiff_t>(count)
                   ? 1
                   : 0;
  }
  return wrong;
}

struct Outcome {
  int wrong = 0, damaged = 0;
  std::string said;  // anything else
};

// What a rank found, until it or its peer heard of damage.
Outcome outcome_of(Communicator& c, std::size_t count, int rounds) {
  Outcome o;
  const Rank peer = 1 - c.rank();
  try {
    for (int i = 0; i < rounds; ++i) o.wrong += wrong_results(c, count, 1);
  } catch (const DataCorrupted& e) {
    o.damaged = 1;
    const std::string text = e.what();
    const auto says = [&](const std::string& part) { return text.find(part) != text.npos; };
    if (e.rank != peer || !says(fmt::format("what rank {} sent", peer)) || !says("we were in operation ") ||
        !(says(" all_reduce of ") || says(" all_gather of ")))
      o.said = fmt::format("{}: {}\n", e.rank, text);
  } catch (const Aborted& e) {
    if (e.by != peer || std::string(e.what()).find("its checksum does not fit") == std::string::npos)
      o.said = fmt::format("aborted by {}: {}\n", e.by, e.what());
  } catch (const std::exception& e) {
    o.said = fmt::format("{}\n", e.what());
  }
  return o;
}

// The outcome of two ranks together, which are threads.
Outcome outcome_over(const FabricSettings& fabric, std::size_t count, int rounds) {
  const Config config{.timeout = 20s, .algorithm = "ring", .transport = "libfabric", .fabric = fabric};
  const auto store = memory_store();
  std::array<Outcome, 2> each;
  std::vector<std::thread> threads;
  for (Rank r = 0; r < 2; ++r)
    threads.emplace_back([&, r] {
      each[static_cast<std::size_t>(r)] = outcome_of(*Communicator::create(store, r, 2, config), count, rounds);
    });
  for (std::thread& t : threads) t.join();
  return {each[0].wrong + each[1].wrong, each[0].damaged + each[1].damaged, each[0].said + each[1].said};
}

bool is_absent() { return !libfabric::library_absence().empty(); }

TEST(DamagedControl, IsDroppedAndSaidAgain) {
  if (is_absent()) GTEST_SKIP() << libfabric::library_absence();
  for (const char* const text :
       {"seed=1,flip=20,control=2", "seed=2,twice=60,control=2", "seed=3,flip=10,twice=30,control=2"}) {
    const InjectedFaults faults(text);
    EXPECT_EQ(run_ranks("libfabric", 3,
                        [](Communicator& c) {
                          if (wrong_results(c, small, 5) + wrong_results(c, large, 2) != 0)
                            throw std::runtime_error("a wrong result");
                          const auto half = c.split(c.rank() % 2, c.rank());
                          if (wrong_results(*half, small, 5) != 0) throw std::runtime_error("a wrong result of a part");
                        },
                        {.timeout = 60s}),
              "")
        << text;
  }
}

TEST(DamagedControl, IsNamedWhereNothingElseComes) {
  if (is_absent()) GTEST_SKIP() << libfabric::library_absence();
  const InjectedFaults faults("seed=1,flip=100,control=2");
  const std::string said = run_ranks("libfabric", 2, [](Communicator&) {}, {.timeout = long_deadline});
  EXPECT_NE(said.find("did not join in time"), said.npos) << said;
  EXPECT_NE(said.find("dropped, which no rank of this job had sent so"), said.npos) << said;
}

// The last message of a rank that ends is sent only once: nobody is left to send it again.
TEST(DamagedControl, OfARankThatEndsIsStillHeard) {
  if (is_absent()) GTEST_SKIP() << libfabric::library_absence();
  constexpr Rank ranks = 3, ends = 1;
  for (int seed = 1; seed <= 6; ++seed) {
    const InjectedFaults faults(fmt::format("seed={},flip=60,control=2", seed));
    const Config config{.timeout = 60s, .transport = "libfabric"};
    const auto store = memory_store();
    std::array<std::string, ranks> said;
    std::vector<std::thread> threads;
    for (Rank r = 0; r < ranks; ++r)
      threads.emplace_back([&, r] {
        const auto c = Communicator::create(store, r, ranks, config);
        if (r == ends) return c->abort();
        try {
          wrong_results(*c, small, 1);
        } catch (const std::exception& e) {
          said[static_cast<std::size_t>(r)] = e.what();
        }
      });
    for (std::thread& t : threads) t.join();
    for (const Rank r : {0, 2})
      EXPECT_NE(said[static_cast<std::size_t>(r)].find("aborted by rank 1"), std::string::npos)
          << seed << ": " << said[static_cast<std::size_t>(r)];
  }
}

TEST(RepeatedData, AreTakenOnce) {
  if (is_absent()) GTEST_SKIP() << libfabric::library_absence();
  const InjectedFaults faults("seed=4,twice=60");
  for (const bool checks : {false, true})
    for (const std::size_t count : {small, large}) {
      const Outcome o = outcome_over({.checksum = checks}, count, 20);
      EXPECT_EQ(o.said, "");
      EXPECT_EQ(o.wrong + o.damaged, 0);
    }
}

// The first rail stops after any packet or piece of large messages, and reports as sent what it does not carry.
TEST(Checksums, AreSaidAgainWhereARailStops) {
  if (is_absent()) GTEST_SKIP() << libfabric::library_absence();
  for (const int rails : {1, 2})
    for (int after = 10; after < 17; ++after) {
      const bool tagged = after % 2 != 0;
      const InjectedFaults faults(fmt::format("stick={},only=0,early=1", after));
      EXPECT_EQ(
          run_ranks(
              "libfabric", 3,
              [](Communicator& c) {
                if (wrong_results(c, large, 4) != 0) throw std::runtime_error("a wrong result");
              },
              {.timeout = 40s, .algorithm = "ring", .fabric = {.tagged = tagged, .checksum = true, .rails = rails}}),
          "")
          << rails << " rails, " << after << (tagged ? ", tagged" : "");
    }
}

class DamagedData : public testing::TestWithParam<FabricSettings> {};

TEST_P(DamagedData, AreNamedWithChecksums) {
  if (is_absent()) GTEST_SKIP() << libfabric::library_absence();
  FabricSettings fabric = GetParam();
  fabric.checksum = true;
  for (int seed = 1; seed <= 4; ++seed)
    for (const std::size_t count : {small, large}) {
      // Small messages are damaged themselves; of large ones, the pieces or the control messages are.
      const char* const what = count == large && seed % 2 == 0 ? "spoil" : "flip";
      const std::string text = fmt::format("seed={},{}=15,control=3", seed, what);
      const InjectedFaults faults(text);
      const Outcome o = outcome_over(fabric, count, 200);
      EXPECT_EQ(o.said, "") << text << ", " << count;
      EXPECT_GT(o.damaged, 0) << text << ", " << count;
      EXPECT_EQ(o.wrong, 0) << text << ", " << count;
    }
}

INSTANTIATE_TEST_SUITE_P(Fabric, DamagedData,
                         testing::Values(FabricSettings{}, FabricSettings{.tagged = true}, FabricSettings{.rails = 2}),
                         [](const auto& each) {
                           return each.param.tagged ? "tagged" : each.param.rails > 1 ? "rails" : "writes";
                         });

// As the README says of the data path: without checksums, nothing checks the data that arrive.
TEST(DamagedPieces, AreAWrongResultWithoutChecksums) {
  if (is_absent()) GTEST_SKIP() << libfabric::library_absence();
  const InjectedFaults faults("seed=2,spoil=50");
  const Outcome o = outcome_over({}, large, 10);
  EXPECT_EQ(o.said, "");
  EXPECT_EQ(o.damaged, 0);
  EXPECT_GT(o.wrong, 0);
}

}  // namespace
}  // namespace trellis::ccl

#endif
