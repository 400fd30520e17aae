// All-to-all rounds give the same bits as messages over lanes, also in many operations one after another, and calls
// that differ between ranks are found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "tests/ccl/ranks/cases.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;
using kernels::DType;

void sums(Call& call, std::size_t turn) {
  constexpr DType types[] = {DType::f32, DType::bf16, DType::i64};
  call.type = types[turn % 3];
  call.op.kind = turn % 2 == 0 ? kernels::Reduction::sum : kernels::Reduction::max;
}

class Rounds : public testing::TestWithParam<std::tuple<std::string, Rank>> {};

// The other tests of collectives use rounds, which are on unless the config turns them off.
TEST_P(Rounds, LanesGiveTheInterpretersBitsWithoutThem) {
  const auto& [transport, ranks] = GetParam();
  const std::size_t counts[] = {1, 13, 1000};
  EXPECT_EQ(run_cases(transport, ranks, counts, sums, {.rounds = false}), "");
}

// From messages within a round's cell to those that fill its room in shared memory, and beyond; some counts are no
// multiples of the number of ranks.
TEST_P(Rounds, OfEverySizeHaveTheInterpretersBits) {
  const auto& [transport, ranks] = GetParam();
  for (const char* algorithm : {"direct", "mesh"})
    EXPECT_EQ(run_ranks(transport, ranks,
                        [&](Communicator& c) {
                          for (const std::size_t count : {2, 11, 12, 13, 29, 500, 4099, 16383, 16384, 16385, 40000})
                            run_case(c, {{.count = count}, algorithm, count % 2 == 0}, count);
                        },
                        {.algorithm = fmt::format("all_reduce={}", algorithm)}),
              "");
}

// A rank's rounds use its four cells, and its two rooms for larger messages, in turn: a rank that is ahead overwrites
// the messages of an earlier round.
TEST_P(Rounds, FollowEachOtherAsRanksComeAndGo) {
  const auto& [transport, ranks] = GetParam();
  EXPECT_EQ(run_ranks(transport, ranks,
                      [](Communicator& c) {
                        std::mt19937 same(1), own(static_cast<unsigned>(c.rank()));
                        std::vector<float> in(4096), out(4096 * static_cast<std::size_t>(c.ranks()));
                        for (int i = 0; i < (sanitized ? 300 : 3000); ++i) {
                          const std::size_t count = 1 + same() % (same() % 8 == 0 ? 4096 : 40);
                          const auto what = same() % 4;
                          if (own() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(own() % 300));
                          std::fill_n(in.begin(), count, static_cast<float>(c.rank() + i));
                          if (what == 0) c.barrier();
                          if (what == 1) c.all_gather(in.data(), out.data(), count, DType::f32);
                          if (what == 2) c.broadcast(in.data(), out.data(), count, DType::f32, i % c.ranks());
                          if (what == 3) c.all_reduce(in.data(), out.data(), count, DType::f32);
                          for (Rank r = 0; what == 1 && r < c.ranks(); ++r)
                            if (out[static_cast<std::size_t>(r) * count] != static_cast<float>(r + i))
                              throw std::runtime_error(fmt::format("{} of rank {} at {}", out[count], r, i));
                          const int sum = c.ranks() * (c.ranks() - 1) / 2 + c.ranks() * i;
                          const bool wrong = (what == 2 && out[count - 1] != static_cast<float>(i % c.ranks() + i)) ||
                                             (what == 3 && out[count - 1] != static_cast<float>(sum));
                          if (wrong) throw std::runtime_error(fmt::format("{} at {}", out[count - 1], i));
                        }
                      }),
            "");
}

INSTANTIATE_TEST_SUITE_P(Over, Rounds,
                         testing::Values(std::tuple{"loopback", 3}, std::tuple{"shared_memory", 3},
                                         std::tuple{"shared_memory", 5}),
                         [](const auto& p) {
                           return fmt::format("{}_{}", std::get<0>(p.param), std::get<1>(p.param));
                         });

// The root of a broadcast waits for no answer, so with two roots the broadcast ends on both; the next operation tells
// that the calls differed.
TEST(Rounds, TellOfCallsBeforeThatDiffered) {
  const std::string said = run_ranks("shared_memory", 3,
                                     [](Communicator& c) {
                                       float x[4] = {};
                                       c.broadcast(x, x, 4, DType::f32, c.rank() == 1 ? 1 : 0);
                                       c.all_reduce(x, x, 4, DType::f32);
                                       throw std::runtime_error("nothing failed");
                                     },
                                     {.timeout = 60s});
  EXPECT_NE(said.find("operation 1, broadcast of 4 f32, root 0"), std::string::npos) << said;
  EXPECT_NE(said.find("operation 1, broadcast of 4 f32, root 1"), std::string::npos) << said;
}

}  // namespace
}  // namespace trellis::ccl
