// f32 that travels as bf16: the same bits on every rank, as ccl/README.md defines them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "ccl/group.h"
#include "schedule/algorithms/algorithm.h"
#include "tests/ccl/ranks/cases.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using kernels::DType;
using kernels::Reduction;
using kernels::Rounding;

Config narrow(Rounding rounding, const std::string& algorithm = "") {
  return {.algorithm = algorithm, .rounding = rounding, .seed = 11, .wire = DType::bf16};
}

// Gives calls each kind of f32 sum in turn; every fourth call is a max instead, whose data travel unchanged.
void f32_kind(Call& call, std::size_t turn) {
  constexpr Reduction ops[] = {Reduction::sum, Reduction::avg, Reduction::scaled_sum, Reduction::max};
  call.op = {ops[turn % 4], 0.3};
}

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}

class Wire : public testing::TestWithParam<std::tuple<std::tuple<std::string, Rank>, Rounding>> {};

TEST_P(Wire, EveryAlgorithmRoundsAlikeOnEveryRank) {
  const auto& [where, rounding] = GetParam();
  const auto& [transport, ranks] = where;
  const std::size_t many[] = {0, 1, 13, 5000};
  const std::size_t few[] = {13, 150};
  EXPECT_EQ(run_cases(transport, ranks,
                      sanitized || ranks > 5 || across_hosts(transport) ? std::span<const std::size_t>(few) : many,
                      f32_kind, narrow(rounding)),
            "");
}

INSTANTIATE_TEST_SUITE_P(Ranks, Wire,
                         testing::Combine(testing::ValuesIn(transports_and_ranks({1, 2, 3, 4, 5, 8}, {3})),
                                          testing::Values(Rounding::nearest, Rounding::stochastic)),
                         [](const auto& p) {
                           const auto& where = std::get<0>(p.param);
                           return fmt::format("{}_{}_{}", std::get<0>(where), std::get<1>(where),
                                              name(std::get<1>(p.param)));
                         });

// Large enough for several pieces of a message, which do not end where chunks do.
TEST(Wire, LargeMessages) {
  for (const std::string& transport : usable_transports())
    for (const char* algorithm : {"ring*2/3", "recursive_doubling", "mesh"})
      for (const bool in_place : {false, true}) {
        Case c;
        c.algorithm = algorithm;
        c.in_place = in_place;
        c.call.count = 400'003;
        EXPECT_EQ(run_ranks(
                      transport, 3, [&](Communicator& comm) { run_case(comm, c, 1); },
                      narrow(Rounding::stochastic, algorithm)),
                  "");
      }
}

// Worked out by hand. 1 + 2^-9 lies between the bf16 values 1 and 1 + 2^-7.
TEST(Wire, WhatIsSentIsRoundedEverywhereAndWhatStaysIsNot) {
  const float a = 1 + 0x1p-9F, b = 3;
  EXPECT_EQ(run_threads(
                2,
                [&](Communicator& c) {
                  const float mine = c.rank() == 0 ? a : b;
                  float sum = 0;
                  c.all_reduce(&mine, &sum, 1, DType::f32);
                  expect(sum == 4, fmt::format("the sum is {}", sum));
                  expect(mine == (c.rank() == 0 ? a : b), "the input was changed");
                  float moved = mine;
                  c.broadcast(&moved, &moved, 1, DType::f32, 0);
                  expect(moved == 1, "the root keeps other bits than it sends");
                  const float both[] = {a, a};
                  float block = 0;
                  c.reduce_scatter(both, &block, 1, DType::f32);
                  expect(block == 1 + a, fmt::format("one sent, one not, and the sum in f32: {}", block));
                },
                narrow(Rounding::nearest, "recursive_doubling,broadcast=binomial,reduce_scatter=direct")),
            "");
}

TEST(Wire, OtherTypesAndOperatorsTravelAsTheyAre) {
  EXPECT_EQ(run_threads(
                2,
                [](Communicator& c) {
                  const float a = 1 + 0x1p-20F;
                  const double d = a;
                  float most = 0;
                  double sum = 0;
                  c.all_reduce(&a, &most, 1, DType::f32, {Reduction::max});
                  c.all_reduce(&d, &sum, 1, DType::f64);
                  expect(most == a && sum == 2 * d, "rounded");
                  float got = 0;
                  Group group;
                  c.send(&a, 1, DType::f32, 1 - c.rank());
                  c.recv(&got, 1, DType::f32, 1 - c.rank());
                  group.end();
                  expect(got == a, "a send was rounded");
                },
                narrow(Rounding::nearest)),
            "");
}

// Values are rounded as they are sent also in a caller's own schedule, and in a permute.
TEST(Wire, SchedulesOfTheCallersRoundToo) {
  const auto ring = schedule::make("ring", {.dims = {3}});
  const std::vector<schedule::Pair> swapped = {{0, 1}, {1, 0}};
  EXPECT_EQ(run_threads(
                3,
                [&](Communicator& c) {
                  const std::vector<float> mine(1000, 1.001F + static_cast<float>(c.rank()));
                  std::vector<float> wanted(1000), sum(1000);
                  c.all_reduce(mine.data(), wanted.data(), 1000, DType::f32);
                  c.run({.input = mine.data(), .output = sum.data(), .count = 1000}, ring);
                  expect(sum == wanted, "other bits than by name");
                  float moved = 1 + 0x1p-9F;
                  c.run({.operation = {.collective = Collective::permute, .pairs = swapped},
                         .input = &moved,
                         .output = &moved,
                         .count = 1});
                  expect(moved == (c.rank() == 2 ? 1 + 0x1p-9F : 1), "a permutation");
                },
                narrow(Rounding::nearest, "all_reduce=ring")),
            "");
}

// The mean over many operations is the exact sum, even where values are rounded several times.
TEST(Wire, StochasticRoundingHasNoBias) {
  constexpr Rank ranks = 4;
  constexpr std::size_t count = 4096;
  constexpr int times = 64;
  EXPECT_EQ(run_threads(
                ranks,
                [&](Communicator& c) {
                  const std::vector<float> mine(count, 1 + 0.3F * 0x1p-7F + static_cast<float>(c.rank()));
                  std::vector<float> sum(count);
                  double mean = 0;
                  for (int i = 0; i < times; ++i) {
                    c.all_reduce(mine.data(), sum.data(), count, DType::f32);
                    for (float s : sum) mean += s / (count * double{times});
                  }
                  const double exact = 10 + 4 * 0.3 * 0x1p-7;
                  // A rounding to steps of 2^-4 or less has a standard deviation of 2^-6 or so, and four roundings have
                  // twice that; five standard deviations are allowed.
                  const double sigma = 0x1p-5 / std::sqrt(count * double{times});
                  expect(std::abs(mean - exact) < 5 * sigma, fmt::format("{} is not {}", mean, exact));
                },
                narrow(Rounding::stochastic, "ring")),
            "");
}

// The error of rank 1 if rank 0 is configured to send bf16, and the others to send f32.
std::string told_differently(Rank ranks, const char* algorithm) {
  const auto store = memory_store();
  std::string said;
  const auto run = [&](Rank rank) {
    const auto c = Communicator::create(store, rank, ranks,
                                        {.timeout = std::chrono::seconds(20),
                                         .algorithm = algorithm,
                                         .transport = "loopback",
                                         .wire = rank == 0 ? DType::bf16 : DType::f32});
    float data[10] = {};
    try {
      c->all_reduce(data, data, 10, DType::f32);
    } catch (const std::exception& e) {
      if (rank == 1) said = e.what();
    }
  };
  std::vector<std::jthread> others;
  for (Rank r = 0; r < ranks; ++r)
    if (r != 1) others.emplace_back([&run, r] { run(r); });
  run(1);
  others.clear();
  return said;
}

const std::string as_bf16 = "rank 0 called operation 1, all_reduce of 10 f32 as bf16, sum";

// The error also says how many bytes a message has.
TEST(Wire, RanksThatWereToldDifferentlyFindOut) {
  const std::string as_f32 = "rank 1 called operation 1, all_reduce of 10 f32, sum";
  const std::string said = told_differently(2, "recursive_doubling");
  const bool found = said.starts_with(as_bf16 + " where " + as_f32) &&
                     said.find("its message has 20 bytes where 40 are due") != std::string::npos;
  // Rank 0 may be the first to find the mismatch.
  const bool heard =
      said == as_f32 + " where " + as_bf16 + "; its message has 40 bytes where 20 are due, as rank 0 found";
  EXPECT_TRUE(found || heard) << said;
}

// Rank 0, which rounds to bf16, sends over lanes, and the others publish a round.
TEST(Wire, RanksThatWereToldDifferentlyFindOutWithRoundsToo) {
  const std::string said = told_differently(3, "direct");
  EXPECT_NE(said.find(as_bf16), std::string::npos) << said;
  EXPECT_NE(said.find("called operation 1, all_reduce of 10 f32, sum"), std::string::npos) << said;
}

TEST(Wire, IsF32OrBf16) {
  EXPECT_THROW(Communicator::create(memory_store(), 0, 1, {.wire = DType::f16}), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::ccl
