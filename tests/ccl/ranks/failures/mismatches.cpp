// Ranks that make different calls and do not wait for each other: each gets an error with both calls. Ranks that are
// merely early get none.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <thread>

#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

struct RootedCall {
  Collective collective;
  std::size_t count;
};

void call(Communicator& c, const RootedCall& r, Rank root, std::vector<float>& in, std::vector<float>& out) {
  c.run({.operation = {.collective = r.collective, .root = schedule::rooted(r.collective) ? root : 0},
         .input = in.data(),
         .output = out.data(),
         .count = r.count,
         .type = DType::f32});
}

// The errors of all ranks; each waits until all have had theirs.
std::string told_to_each(const std::string& transport, Rank ranks, const std::function<void(Communicator&)>& differ) {
  std::atomic<int>& told = seen_by_all();
  return run_ranks(transport, ranks,
                   [&](Communicator& c) {
                     try {
                       differ(c);
                     } catch (...) {
                       ++told;
                       await(told, ranks);
                       throw;
                     }
                     throw std::runtime_error("nothing failed");
                   },
                   {.timeout = 60s});
}

void expect_on_each(const std::string& said, Rank ranks, const std::array<std::string, 2>& calls) {
  for (Rank r = 0; r < ranks; ++r) {
    const std::size_t begin = said.find(fmt::format("rank {}: ", r));
    ASSERT_NE(begin, std::string::npos) << said;
    const std::string line = said.substr(begin, said.find('\n', begin) - begin);
    for (const std::string& one : calls) EXPECT_NE(line.find(one), std::string::npos) << line;
  }
}

// A ring in another order of ranks sends messages of the same sizes between the same two ranks.
TEST(Settings, OtherAlgorithmsOfOneCallAreNoWrongResult) {
  const auto store = memory_store();
  std::array<std::string, 2> said;
  const auto rank = [&](Rank r) {
    try {
      const auto c = Communicator::create(
          store, r, 2,
          {.timeout = 60s, .algorithm = r == 0 ? "all_reduce=ring" : "all_reduce=ring~1.0", .transport = "loopback"});
      std::vector<float> data(64, 1);
      c->all_reduce(data.data(), data.data(), data.size(), DType::f32);
      c->finalize();
    } catch (const Mismatch& e) {
      said[static_cast<std::size_t>(r)] = e.what();
    } catch (const Aborted& e) {
      said[static_cast<std::size_t>(r)] = e.what();
    }
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  EXPECT_NE((said[0] + said[1]).find("or their settings are"), std::string::npos) << said[0] << said[1];
  EXPECT_FALSE(said[0].empty() || said[1].empty()) << said[0] << said[1];
}

class Roots : public testing::TestWithParam<std::string> {};

// Where a message is small, a root is done as soon as it has sent.
TEST_P(Roots, TwoOfThemAreNamedToEachRank) {
  std::vector<std::size_t> counts = {4};
  if (!across_hosts(GetParam())) counts.push_back(100'000);
  for (const Collective what : {Collective::broadcast, Collective::scatter, Collective::reduce, Collective::gather})
    for (const Rank ranks : {2, 3})
      for (const std::size_t count : counts) {
        const auto differ = [&](Communicator& c) {
          std::vector<float> in(count * 3), out(count * 3);
          call(c, {what, count}, c.rank() % 2, in, out);
          c.barrier();
        };
        const std::string said = told_to_each(GetParam(), ranks, differ);
        const std::string of = fmt::format("operation 1, {} of {} f32{}, root ", schedule::name(what), count,
                                           what == Collective::reduce ? ", sum" : "");
        // A rank that has sent to the wrong root goes on, so it may already be in a later call than a rank that is yet
        // to come.
        const bool may_go_on = ranks > 2 && (what == Collective::reduce || what == Collective::gather);
        expect_on_each(said, ranks, {of + (may_go_on ? "" : "0"), of + (may_go_on ? "" : "1")});
      }
}

// Nothing makes the two ranks wait for each other.
TEST_P(Roots, TwoThatOnlySendAreNamedWhereverTheyGoOn) {
  const std::string said = told_to_each(GetParam(), 2, [](Communicator& c) {
    float x[4] = {};
    for (int i = 0; i < 100; ++i) c.broadcast(x, x, 4, DType::f32, c.rank());
  });
  expect_on_each(said, 2, {"broadcast of 4 f32, root 0", "broadcast of 4 f32, root 1"});
}

// The rank that finds the difference leaves at once, as a process does that ends with an error.
TEST_P(Roots, BothSidesOfALargeOperationSayWhatDiffers) {
  const std::string said = run_ranks(GetParam(), 2,
                                     [](Communicator& c) {
                                       const std::size_t count = (1 << 20) + static_cast<std::size_t>(c.rank());
                                       std::vector<float> x(count);
                                       c.all_reduce(x.data(), x.data(), count, DType::f32);
                                     },
                                     {.timeout = 60s});
  expect_on_each(said, 2, {"operation 1, all_reduce of 1048576 f32", "operation 1, all_reduce of 1048577 f32"});
}

// Small blocks, and some whose messages come in several pieces.
TEST_P(Roots, SizesOfBlocksAreTold) {
  for (const std::size_t count : {4, 100'000}) {
    const std::string said = told_to_each(GetParam(), 2, [&](Communicator& c) {
      const std::size_t block = c.rank() == 0 ? count : 2 * count;
      std::vector<float> in(2 * block), out(2 * block);
      const std::array counts = {block, block};
      c.all_to_all_v(in, counts, std::span(out), counts);
      c.barrier();
    });
    expect_on_each(said, 2,
                   {fmt::format("operation 1, all_to_all_v of {} f32", 2 * count),
                    fmt::format("operation 1, all_to_all_v of {} f32", 4 * count)});
  }
}

TEST_P(Roots, SumsOfBlocksAreTold) {
  const std::string said = told_to_each(GetParam(), 2, [](Communicator& c) {
    const std::array<std::size_t, 2> counts = {3, c.rank() == 0 ? 4U : 5U};
    std::vector<float> in(counts.at(static_cast<std::size_t>(c.rank()))), out(counts[0] + counts[1]);
    c.all_gather_v(in, std::span(out), counts);
    c.barrier();
  });
  expect_on_each(said, 2, {"operation 1, all_gather_v of 7 f32", "operation 1, all_gather_v of 8 f32"});
}

// A rank that only sends may be several operations ahead of the others, and these may be ahead of it.
TEST_P(Roots, WhoIsEarlyIsNotTakenForAnother) {
  const int rounds = across_hosts(GetParam()) ? 300 : 2000;
  EXPECT_EQ(run_ranks(GetParam(), 4,
                      [&](Communicator& c) {
                        std::mt19937 alike(1), own(static_cast<unsigned>(c.rank()) + 7);
                        std::vector<float> in(400), out(400);
                        const Collective all[] = {Collective::broadcast, Collective::reduce, Collective::gather,
                                                  Collective::scatter, Collective::all_reduce};
                        for (int i = 0; i < rounds; ++i) {
                          const Collective what = all[alike() % 5];
                          const std::size_t count = alike() % 3 * 50;
                          call(c, {what, count}, static_cast<Rank>(alike() % 4), in, out);
                          if (own() % 50 == 0) std::this_thread::sleep_for(1ms);
                        }
                        c.finalize();
                      },
                      {.timeout = 60s}),
            "");
}

INSTANTIATE_TEST_SUITE_P(Over, Roots, every_transport());

class Finalized : public testing::TestWithParam<std::string> {};

TEST_P(Finalized, ByOneRankAloneIsToldToThoseThatGoOn) {
  std::atomic<int>& steps = seen_by_all();  // rank 1 has finalized: 1; both others have the error: 3
  const std::string said = run_ranks(GetParam(), 3,
                                     [&](Communicator& c) {
                                       std::vector<float> x(100);
                                       const auto sum = [&] { c.all_reduce(x.data(), x.data(), 100, DType::f32); };
                                       sum();
                                       if (c.rank() == 1) {
                                         c.finalize();
                                         ++steps;
                                         return await(steps, 3);
                                       }
                                       await(steps, 1);
                                       try {
                                         sum();
                                       } catch (const PeerLost&) {
                                         c.shrink(std::array{1})->barrier();
                                         ++steps;
                                         throw;
                                       }
                                     },
                                     {.timeout = 60s});
  for (const char* words :
       {"rank 0: rank 1", "rank 2: rank 1", "has finalized the communicator and makes no more calls"})
    EXPECT_NE(said.find(words), std::string::npos) << said;
  EXPECT_EQ(said.find("rank 1: "), std::string::npos) << said;
}

// Rank 1, which finalizes, may also be the one that finds that rank 0 has gone on.
TEST_P(Finalized, WhileOthersGoOnIsToldToAll) {
  std::atomic<int>& told = seen_by_all();
  const std::string said = run_ranks(GetParam(), 2,
                                     [&](Communicator& c) {
                                       float x[4] = {};
                                       c.barrier();
                                       try {
                                         if (c.rank() == 0) c.broadcast(x, x, 4, DType::f32, 0);
                                         if (c.rank() == 0) c.barrier();
                                         if (c.rank() == 1) std::this_thread::sleep_for(20ms);
                                         if (c.rank() == 1) c.finalize();
                                       } catch (...) {
                                         ++told;
                                         await(told, 2);
                                         throw;
                                       }
                                       ++told;
                                       await(told, 2);
                                     },
                                     {.timeout = 60s});
  EXPECT_NE(said.find("rank 0: rank 1"), std::string::npos) << said;
  if (const std::size_t found = said.find("\nrank 1: "); found != std::string::npos) {
    EXPECT_NE(said.find("rank 0 called operation", found), std::string::npos) << said;
  }
}

// The message of the rank that finalized may be on its way, so the receiver waits until its deadline.
TEST_P(Finalized, BySomeoneWhoHasSentNothing) {
  std::atomic<int>& over = seen_by_all();
  const std::string said = run_ranks(GetParam(), 2,
                                     [&](Communicator& c) {
                                       c.barrier();
                                       if (c.rank() == 1) {
                                         c.finalize();
                                         return await(over, 1);
                                       }
                                       float x = 0;
                                       try {
                                         c.recv(&x, 1, DType::f32, 1);
                                       } catch (...) {
                                         ++over;
                                         throw;
                                       }
                                     },
                                     {.timeout = long_deadline});
  EXPECT_NE(said.find("it has finalized the communicator"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Over, Finalized, every_transport());

}  // namespace
}  // namespace trellis::ccl
