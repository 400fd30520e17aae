// Tests that hold for every registered algorithm, by walking the registry.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "schedule/proof/verify.h"
#include "schedule/schedule_too_large.h"
#include "tests/schedule/requests.h"

namespace trellis::schedule {
namespace {

class EveryAlgorithm : public testing::TestWithParam<const Algorithm*> {};

std::vector<const Algorithm*> all() {
  std::vector<const Algorithm*> list;
  for (const auto& [name, algorithm] : algorithms()) list.push_back(&algorithm);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Registry, EveryAlgorithm, testing::ValuesIn(all()),
                         [](const auto& algorithm) { return algorithm.param->name; });

TEST_P(EveryAlgorithm, IsProved) {
  int proved = 0;
  each_case(*GetParam(), 9, [&](const Case& c) {
    const Report report = verify(make(*c.algorithm, c.request));
    EXPECT_TRUE(report.ok()) << c.text() << ": " << report.text();
    ++proved;
  });
  EXPECT_GT(proved, 0);
}

TEST_P(EveryAlgorithm, MakesOneRanksProgramAsWithAll) {
  each_case(*GetParam(), 9, [](const Case& c) {
    const Schedule whole = make(*c.algorithm, c.request);
    for (Rank r = 0; r < whole.ranks(); ++r)
      EXPECT_TRUE(same(make_program(*c.algorithm, c.request, r), whole.programs[r])) << c.text() << " rank " << r;
  });
}

TEST_P(EveryAlgorithm, IsAsSymmetricAsItSays) {
  each_case(*GetParam(), 9, [](const Case& c) {
    EXPECT_EQ(asymmetry(*c.algorithm, c.request, make(*c.algorithm, c.request)), "") << c.text();
  });
}

TEST_P(EveryAlgorithm, SaysWhatItServes) {
  const Algorithm& a = *GetParam();
  EXPECT_FALSE(a.summary.empty());
  EXPECT_FALSE(a.constraint.empty());
  EXPECT_FALSE(a.serves.empty());
  ASSERT_NE(a.build, nullptr);
}

TEST_P(EveryAlgorithm, RefusesNonsenseWithTheValue) {
  Request request{.operation = {.collective = GetParam()->serves.front()}, .dims = {0}};
  EXPECT_THROW(make(*GetParam(), request), std::invalid_argument);
  request.dims = {};
  EXPECT_THROW(make(*GetParam(), request), std::invalid_argument);
  request.dims = {4};
  request.channels = 0;
  EXPECT_THROW(make(*GetParam(), request), std::invalid_argument);
  request.channels = 1;
  request.segments = -1;
  EXPECT_THROW(make(*GetParam(), request), std::invalid_argument);
  request.dims = {1 << 30, 1 << 30};
  EXPECT_THROW(make(*GetParam(), request), std::invalid_argument);
}

// Chunk counts are computed without overflow, and refused if a Task can't hold them.
TEST(Algorithms, RefuseMoreChunksThanATaskHolds) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  std::set<std::string> refusing;
  int accepted = 0;
  for (const auto& [name, a] : algorithms())
    // Leaves out algorithms with levels: their error messages differ.
    for (Collective c : a.has_levels ? std::vector<Collective>{} : a.serves)
      for (const auto& dims : std::vector<std::vector<Rank>>{{4}, {1 << 13}, {1 << 24}, {1 << 29}, {1 << 15, 1 << 14}})
        for (const auto& [channels, segments] : {std::pair(1, 1), {7, 1}, {256, 1}, {1, 1 << 16}, {64, 1 << 16}}) {
          const Request r{.operation = {.collective = c}, .dims = dims, .channels = channels, .segments = segments};
          const std::string why = refusal(a, r);
          if (!why.empty() && why.find(" chunks: expected at most") == std::string::npos) continue;
          const std::int64_t chunks = (a.pieces ? a.pieces(r) : 1) * (by_block(c) ? r.ranks() : 1);
          const std::string number = fmt::format("make {} chunks: expected at most {}", chunks, most);
          EXPECT_EQ(chunks > most, !why.empty()) << name << ": " << chunks << " chunks, " << why;
          if (why.empty()) {
            EXPECT_EQ(data_chunks(task_of(a, r)), chunks) << name;
            ++accepted;
            continue;
          }
          EXPECT_TRUE(why.ends_with(number)) << name << ": " << why << " instead of " << number;
          EXPECT_THROW(task_of(a, r), std::invalid_argument) << name;
          EXPECT_THROW(make_program(a, r, 0), std::invalid_argument) << name;
          refusing.insert(name);
        }
  EXPECT_GT(accepted, 100);
  for (const char* name : {"ring", "flat_ring", "pat", "rdh", "bine", "bine_torus", "kangaring", "torus", "swing",
                           "halving_doubling", "mesh", "two_step", "direct", "pairwise"})
    EXPECT_TRUE(refusing.contains(name)) << name;
}

TEST(Algorithms, CountChunksBeyondThirtyTwoBits) {
  const Request r{.dims = {1 << 24}, .channels = 256};
  EXPECT_EQ(refusal(algorithm_named("ring"), r),
            "256 channels of 1 segments on 16777216 ranks make 4294967296 chunks: expected at most 2147483647");
  const Request levels{.dims = {1 << 14, 1 << 15}, .channels = 256, .segments = 1 << 16, .levels = {"ring", "ring"}};
  EXPECT_NE(refusal(algorithm_named("hierarchical"), levels).find("9007199254740992 chunks"), std::string::npos);
}

// The number of steps is estimated from a few ranks' programs: a tree's root alone tells nothing of the others.
TEST(Algorithms, RefuseMoreStepsThanAreWrittenOutBeforeTheyWrite) {
  const Request r{.operation = {.collective = Collective::all_to_all}, .dims = {16, 16}};
  for (const char* name : {"direct", "pairwise", "hierarchical"}) {
    const Algorithm& algorithm = algorithm_named(name);
    const auto steps = static_cast<std::int64_t>(make_program(algorithm, r, 0).steps.size()) * r.ranks();
    expect_writable(algorithm, r, steps + 16 * r.ranks());
    try {
      expect_writable(algorithm, r, steps / 2);
      FAIL() << name;
    } catch (const ScheduleTooLarge& e) {
      const std::string said = fmt::format("{} on 16x16 takes at least {} steps, which need ", name, steps);
      EXPECT_TRUE(std::string(e.what()).starts_with(said)) << e.what();
      EXPECT_NE(std::string(e.what()).find(fmt::format("GB of memory; up to {} are", steps / 2)), std::string::npos);
    }
  }
  const Request tree{.operation = {.collective = Collective::broadcast}, .dims = {256}};
  expect_writable(algorithm_named("direct"), tree, 2 * 256);
}

// Scratch may need more chunks than a program can number, even if the data do not.
TEST(Algorithms, RefuseMoreScratchThanAProgramNumbers) {
  for (const auto& [name, dims] : {std::pair("direct", 256), {"kangaring", 128}}) try {
      make_program(algorithm_named(name), {.dims = {dims}, .channels = 128, .segments = 1 << 16}, 0);
      FAIL() << name;
    } catch (const std::invalid_argument& e) {
      EXPECT_NE(std::string(e.what()).find("would take more than 2147483647 chunks of tmp"), std::string::npos)
          << name << ": " << e.what();
    }
}

// Algorithms that do not use dims build the same schedule for all dims with equal rank counts.
TEST(Algorithms, MakeNothingOfDimsThatTheyDoNotUse) {
  int compared = 0;
  for (const auto& [name, a] : algorithms())
    for (Collective c : a.dims == UseOfDims::none ? a.serves : std::vector<Collective>{})
      for (const auto& dims : std::vector<std::vector<Rank>>{{4, 4}, {2, 8}, {2, 2, 4}, {4, 3}, {2, 3, 4}})
        for (const auto& [channels, segments] : {std::pair(1, 1), {2, 1}, {1, 2}}) {
          Request shaped{.operation = {.collective = c}, .dims = dims, .channels = channels, .segments = segments};
          if (c == Collective::send_recv) shaped.operation.peer = 1;
          if (c == Collective::permute) shaped.operation.pairs = {{0, 1}, {1, 0}};
          Request row = shaped;
          row.dims = {shaped.ranks()};
          if (!refusal(a, row).empty() || !refusal(a, shaped).empty()) continue;
          const Schedule one = make(a, shaped), other = make(a, row);
          EXPECT_EQ(one.task, other.task) << name;
          EXPECT_EQ(symmetry_of(a, shaped).axes, symmetry_of(a, row).axes) << name;
          EXPECT_TRUE(std::ranges::equal(one.programs, other.programs, [](const Program& p, const Program& q) {
            return same(p, q);
          })) << name;
          ++compared;
        }
  EXPECT_GT(compared, 300);
}

// watch_program shows every step that make_program builds, unless it is stopped. Steps within a round may come in
// another order.
TEST(Algorithms, AreWatchedStepByStep) {
  for (const auto& [name, a] : algorithms()) {
    const Request r{.operation = {.collective = a.serves.front()}, .dims = {4, 2}};
    if (!refusal(a, r).empty()) continue;
    const auto whole = make_program(a, r, 1).steps.size();
    std::size_t seen = 0;
    const std::function<bool(const Program&)> all = [&](const Program& p) { return (seen = p.steps.size()) > 0; };
    EXPECT_TRUE(watch_program(a, r, 1, all)) << name;
    EXPECT_EQ(seen, whole) << name;
    if (whole < 2) continue;
    const std::function<bool(const Program&)> two = [&](const Program& p) { return (seen = p.steps.size()) < 2; };
    EXPECT_FALSE(watch_program(a, r, 1, two)) << name;
    EXPECT_EQ(seen, 2) << name;
  }
}

TEST(Algorithms, CoverEveryCollective) {
  for (Collective c : collectives()) {
    bool served = false;
    for (const auto& [name, algorithm] : algorithms())
      for (Collective own : algorithm.serves) served |= own == c;
    EXPECT_TRUE(served) << name(c);
  }
}

TEST(Algorithms, UnknownNamesAreAnsweredWithTheKnown) {
  try {
    algorithm_named("rign");
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_NE(std::string(e.what()).find("ring"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace trellis::schedule
