#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/algorithm_config.h"
#include "schedule/proof/verify.h"
#include "tests/schedule/requests.h"

namespace trellis::schedule {
namespace {

Request request_for(Collective c, std::vector<Rank> dims, const AlgorithmConfig& config) {
  Request r{.operation = {.collective = c}, .dims = std::move(dims)};
  if (rooted(c)) r.operation.root = r.ranks() - 1;
  if (c == Collective::send_recv) r.operation.root = 1, r.operation.peer = r.ranks() - 1;
  if (c == Collective::permute) r.operation.pairs = {{0, 1}, {1, 3}};
  return request_by(config, r);
}

// Each order of the dimensions, as in "1.0".
std::vector<std::string> orders(std::size_t dims) {
  std::vector<std::size_t> order(dims);
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::string> all;
  do all.push_back(fmt::format("{}", fmt::join(order, ".")));
  while (std::ranges::next_permutation(order).found);
  return all;
}

TEST(Order, EveryAlgorithmIsRightInEveryOrder) {
  int served = 0;
  for (const auto& [name, algorithm] : algorithms())
    for (const Collective c : collectives())
      for (const std::vector<Rank>& dims : std::vector<std::vector<Rank>>{{4, 2}, {2, 4}, {1, 2, 2}})
        for (const std::string& order : orders(dims.size()))
          for (const bool in_place : {false, true}) {
            Request r = request_for(c, dims, algorithm_config_named(name + "^" + order));
            r.operation.in_place = in_place;
            if (!refusal(algorithm, r).empty()) continue;
            ++served;
            const Case what{&algorithm, r};
            const Schedule s = make(algorithm, r);
            const Report report = verify(s);
            EXPECT_TRUE(report.ok()) << what.text() << " " << order << ": " << report.text();
            EXPECT_EQ(asymmetry(algorithm, r, s), "") << what.text() << " " << order;
            for (Rank rank = 0; rank < r.ranks(); rank += 3)
              EXPECT_TRUE(same(make_program(algorithm, r, rank), s.programs[rank])) << what.text() << " " << order;
          }
  EXPECT_GT(served, 600);
}

TEST(Order, TheFirstDimensionIsGoneThroughFirst) {
  const Request plain{.dims = {2, 4}}, other{.dims = {4, 2}, .order = {1, 0}};
  const Program a = make_program(algorithm_named("hierarchical"), plain, 0),
                b = make_program(algorithm_named("hierarchical"), other, 0);
  ASSERT_FALSE(a.steps.empty());
  EXPECT_EQ(a.steps.front().end.peer, 1);  // the inner level of `plain` has ranks 0 and 1
  EXPECT_EQ(b.steps.front().end.peer, 4);
}

TEST(Order, WhatIsNoneIsRefused) {
  for (const std::vector<std::int32_t>& order :
       {std::vector{0}, std::vector{0, 0}, std::vector{0, 2}, std::vector{0, 1, 2}})
    EXPECT_THROW(make("ring", {.dims = {4, 2}, .order = order}), std::invalid_argument);
}

TEST(Split, TwoWaysCarryTheirSharesAtOnce) {
  for (const char* text :
       {"split(ring:2,direct)", "split(torus,torus^1.0:3)*2", "split(mesh:3,rdh:2,ring)",
        "split(hierarchical(direct,ring)@4x2,kangaring)", "split(ring*2,pairwise)", "split(pairwise,halving_doubling)",
        "split(direct,hierarchical)@4x2", "split(direct,hierarchical(halving_doubling)@8)"}) {
    const AlgorithmConfig config = algorithm_config_named(text);
    EXPECT_EQ(algorithm_config_named(text_of(config)), config);
    int served = 0;
    for (const Collective c : collectives())
      for (const bool in_place : {false, true}) {
        Request r = request_for(c, {4, 2}, config);
        r.operation.in_place = in_place;
        if (!refusal(algorithm_named("split"), r).empty()) continue;
        ++served;
        const Schedule s = make("split", r);
        const Report report = verify(s);
        EXPECT_TRUE(report.ok()) << text << " " << name(c) << ": " << report.text();
        EXPECT_EQ(asymmetry(algorithm_named("split"), r, s), "") << text << " " << name(c);
        EXPECT_TRUE(same(make_program(algorithm_named("split"), r, 5), s.programs[5])) << text << " " << name(c);
      }
    EXPECT_GT(served, 0) << text;
  }
}

TEST(Split, SlipsAreRefused) {
  for (const char* text : {"split(ring)", "split(ring:0,direct)", "split(ring:x,direct)", "split(ring@3,direct)",
                           "split(nobody,ring)", "split(split(ring,direct),ring)", "split(ring*1073741825,direct)*4",
                           "split(ring*2147483647,direct)*2", "split(ring/2147483647,direct)/2"})
    EXPECT_THROW(make("split", request_by(algorithm_config_named(text), {.dims = {4, 2}})), std::invalid_argument)
        << text;
}

TEST(AlgorithmConfig, ReadsBackAsItWasWritten) {
  for (const char* text :
       {"ring", "ring channels=2 segments=4", "torus dims=4x16 order=(1,0)", "hierarchical levels=torus:2 dims=4x4",
        "hierarchical levels=(mesh,torus:2) dims=4x4x4 channels=2", "ring numbering=(0,5,1-4,6,7)",
        "split levels=(hierarchical levels=(mesh,ring) dims=4x2:3,torus order=(1,0)) segments=2",
        "file:some/found.schedule"})
    EXPECT_EQ(text_of(algorithm_config_named(text)), text);
  for (const char* wrong : {"",
                            "*2",
                            "ring*0",
                            "ring/x",
                            "ring*",
                            "ring@",
                            "ring@4x",
                            "ring^",
                            "a(b",
                            "a)b",
                            "a(b))",
                            "ring channels=0",
                            "ring channels",
                            "ring chanels=2",
                            "ring channels=2 channels=2",
                            "ring*2 channels=2",
                            "ring dims=4x",
                            " ring",
                            "ring  channels=2",
                            "ring levels=(mesh",
                            "channels=2",
                            "ring order=1.0",
                            "ring numbering=x"})
    EXPECT_THROW(algorithm_config_named(wrong), std::invalid_argument) << wrong;
}

TEST(AlgorithmConfig, TheShortFormIsTheSame) {
  const std::pair<const char*, const char*> same[] = {
      {"ring*2/4", "ring channels=2 segments=4"},
      {"torus@4x16^1.0", "torus dims=4x16 order=(1,0)"},
      {"hierarchical(mesh,torus:2)@4x4x4*2", "hierarchical levels=(mesh,torus:2) dims=4x4x4 channels=2"}};
  for (const auto& [brief, text] : same) EXPECT_EQ(text_of(algorithm_config_named(brief)), text);
}

TEST(AlgorithmConfig, EndsInALineBeforeTheFirstOtherWord) {
  const std::pair<const char*, const char*> lines[] = {{"ring", "ring"},
                                                       {"ring*2 f32", "ring*2"},
                                                       {"ring channels=2 f32", "ring channels=2"},
                                                       {"split levels=(torus order=(1,0):2,ring) channels=2 after a b",
                                                        "split levels=(torus order=(1,0):2,ring) channels=2"},
                                                       {"", ""},
                                                       {"ring  ", "ring"},
                                                       {"ring levels=(a b", "ring levels=(a b"}};
  for (const auto& [line, config] : lines) EXPECT_EQ(config_at_start_of(line), config);
}

}  // namespace
}  // namespace trellis::schedule
