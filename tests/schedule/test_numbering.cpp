// Algorithms that see ranks under other numbers, as for ranks placed on hosts in a mixed order.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "schedule/algorithms/algorithm.h"
#include "schedule/algorithms/algorithm_config.h"
#include "schedule/proof/folded.h"
#include "schedule/proof/verify.h"
#include "tests/why.h"

namespace trellis::schedule {
namespace {

struct Numbered {
  std::vector<Rank> dims, numbering;
};

const Numbered numbered[] = {{{4, 2}, {0, 2, 4, 6, 1, 3, 5, 7}},    {{4, 2}, {7, 0, 5, 2, 3, 6, 1, 4}},
                             {{2, 4}, {3, 0, 1, 2, 7, 6, 5, 4}},    {{3, 2}, {5, 1, 2, 0, 3, 4}},
                             {{2, 2, 2}, {6, 1, 0, 7, 2, 5, 4, 3}}, {{5}, {4, 2, 0, 1, 3}}};

Request request_for(Collective c, const Numbered& n, bool in_place = false) {
  Request r{.operation = {.collective = c, .in_place = in_place}, .dims = n.dims, .numbering = n.numbering};
  if (rooted(c)) r.operation.root = r.ranks() - 2;
  if (c == Collective::send_recv) r.operation.root = 1, r.operation.peer = r.ranks() - 1;
  if (c == Collective::permute) r.operation.pairs = {{0, 1}, {1, 3}};
  return r;
}

// The number of chunks that ranks send to other hosts. A host has `each` ranks, and rank r is the numbers[r]-th.
std::int64_t crossing(const Schedule& s, const std::vector<Rank>& numbers, Rank each) {
  std::int64_t chunks = 0;
  for (std::size_t rank = 0; rank < s.programs.size(); ++rank)
    for (const Step& step : s.programs[rank].steps)
      for (const End& end : {step.end, step.second})
        if (sends(step.op) && end.peer >= 0 && numbers[rank] / each != numbers[end.peer] / each)
          chunks += step.from.count;
  return chunks;
}

std::vector<Rank> inverse(const std::vector<Rank>& numbering) {
  std::vector<Rank> numbers(numbering.size());
  for (std::size_t i = 0; i < numbering.size(); ++i) numbers[numbering[i]] = static_cast<Rank>(i);
  return numbers;
}

class Numbering : public testing::TestWithParam<Numbered> {};

TEST_P(Numbering, EveryAlgorithmIsRight) {
  int served = 0;
  for (const auto& [name, algorithm] : algorithms())
    for (const Collective c : collectives())
      for (const bool in_place : {false, true}) {
        const Request r = request_for(c, GetParam(), in_place);
        if (!refusal(algorithm, r).empty()) continue;
        ++served;
        const Schedule s = make(algorithm, r);
        const Report report = verify(s);
        EXPECT_TRUE(report.ok()) << name << " " << trellis::schedule::name(c) << ": " << report.text();
        for (Rank rank = 0; rank < r.ranks(); rank += 2)
          EXPECT_TRUE(same(make_program(algorithm, r, rank), s.programs[rank])) << name;
      }
  EXPECT_GT(served, 50);
}

// Hierarchies (with several algorithms at their levels, with channels, and with segments) send as many chunks between
// hosts as if ranks were numbered host after host.
TEST_P(Numbering, OfAHierarchyCrossesHostsAsRowsDo) {
  if (GetParam().dims.size() != 2) GTEST_SKIP() << "no hosts";
  std::vector<Rank> in_rows(GetParam().numbering.size());
  std::iota(in_rows.begin(), in_rows.end(), 0);
  int served = 0;
  for (const char* text : {"hierarchical", "hierarchical(direct,ring)", "hierarchical(ring,recursive_doubling)*2",
                           "hierarchical(mesh,direct)/3", "flat_ring"})
    for (const Collective c : collectives()) {
      const AlgorithmConfig config = algorithm_config_named(text);
      const Algorithm& algorithm = algorithm_named(config.algorithm);
      Request r = request_by(config, request_for(c, GetParam()));
      r.numbering = GetParam().numbering;
      if (!refusal(algorithm, r).empty()) continue;
      ++served;
      const Schedule s = make(algorithm, r);
      EXPECT_TRUE(verify(s).ok()) << text << " " << name(c);
      Request rows = r.in_order();
      EXPECT_TRUE(rows.numbering.empty());
      EXPECT_EQ(crossing(s, inverse(r.numbering), r.dims.front()),
                crossing(make(algorithm, rows), in_rows, r.dims.front()))
          << text << " " << name(c);
    }
  EXPECT_GT(served, 20);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Numbering, testing::ValuesIn(numbered),
                         [](const auto& p) { return "number" + std::to_string(p.index); });

TEST(Numbering, AnOrderOfDimensionsIsOneOfThem) {
  for (const auto& [name, algorithm] : algorithms())
    for (const Collective c : collectives()) {
      Request by_turns = request_for(c, {{4, 2}, {0, 2, 4, 6, 1, 3, 5, 7}}), ordered = by_turns;
      ordered.dims = {2, 4}, ordered.order = {1, 0}, ordered.numbering.clear();
      EXPECT_EQ(refusal(algorithm, by_turns).empty(), refusal(algorithm, ordered).empty()) << name;
      if (!refusal(algorithm, by_turns).empty()) continue;
      const Schedule a = make(algorithm, by_turns), b = make(algorithm, ordered);
      EXPECT_TRUE(std::ranges::equal(a.programs, b.programs, same)) << name << " " << trellis::schedule::name(c);
    }
}

TEST(Numbering, WhatIsNoneIsRefused) {
  const auto why = [](const Request& r) { return trellis::why([&] { make("ring", r); }); };
  EXPECT_EQ(why({.dims = {2, 2}, .numbering = {0, 1, 2}}), "a numbering of 3 ranks: expected 4");
  EXPECT_EQ(why({.dims = {3}, .numbering = {0, 1, 1}}), "rank 1 in a numbering: expected each of 0 to 2 once");
  EXPECT_EQ(why({.dims = {3}, .numbering = {0, 1, 3}}), "rank 3 in a numbering: expected each of 0 to 2 once");
  EXPECT_EQ(why({.dims = {2}, .order = {0}, .numbering = {1, 0}}),
            "order 0 and a numbering of 2 ranks: expected one of the two");
  EXPECT_EQ(trellis::why([] {
              verify_folded(algorithm_named("ring"), {.dims = {2}, .numbering = {1, 0}});
            }),
            "a numbering of 2 ranks: only a schedule that is written out is proved with one");
}

TEST(Numbering, IsReadBackAsItWasWritten) {
  for (const char* text : {"0.3.1.2", "0-2.5.3.4", "0-6+2.1-7+2", "3", "5.4.3"})
    EXPECT_EQ(numbering_text(numbering_named(text)), text);
  EXPECT_EQ(numbering_named("0-6+2.1-7+2"), (std::vector<Rank>{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(numbering_named("0-5+2.9"), (std::vector<Rank>{0, 2, 4, 9}));
  for (const char* wrong : {"", "x", "1.", ".1", "3-1", "1-", "1-3+0", "1+2", "-1", "0-99999999", "1-3+"})
    EXPECT_THROW(numbering_named(wrong), std::invalid_argument) << wrong;
  const std::pair<const char*, const char*> pairs[] = {
      {"hierarchical(direct,ring)@4x2~0-6+2.1-7+2*2/3",
       "hierarchical levels=(direct,ring) dims=4x2 numbering=(0-6+2,1-7+2) channels=2 segments=3"},
      {"ring~1.0", "ring numbering=(1,0)"},
      {"split(ring~2.0.1:3,direct)", "split levels=(ring~2.0.1:3,direct)"}};
  for (const auto& [brief, text] : pairs) {
    EXPECT_EQ(text_of(algorithm_config_named(brief)), text);
    EXPECT_EQ(algorithm_config_named(text), algorithm_config_named(brief));
  }
}

}  // namespace
}  // namespace trellis::schedule
