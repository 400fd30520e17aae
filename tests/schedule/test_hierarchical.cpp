// Composition: any inner algorithm, any outer one, over several levels, and several dimensions per level.
#include <gtest/gtest.h>

#include "schedule/proof/verify.h"
#include "tests/schedule/requests.h"
#include "tests/why.h"

namespace trellis::schedule {
namespace {

const Algorithm& hierarchical() { return algorithm_named("hierarchical"); }

// Proves the request in place and out of place, and that each rank's program, built by itself, equals that of the whole
// schedule. False if refused.
bool proves(Request request) {
  if (!refusal(hierarchical(), request).empty()) return false;
  for (const bool in_place : {false, true}) {
    request.operation.in_place = in_place;
    const Schedule s = make(hierarchical(), request);
    const Report report = verify(s);
    std::string levels;
    for (const std::string& level : request.levels) levels += level + " ";
    EXPECT_TRUE(report.ok()) << name(request.operation.collective) << " by " << levels << ": " << report.text();
    EXPECT_EQ(asymmetry(hierarchical(), request, s), "") << name(request.operation.collective) << " by " << levels;
    for (Rank r = 0; r < s.ranks(); ++r)
      EXPECT_TRUE(same(make_program(hierarchical(), request, r), s.programs[r])) << levels << "rank " << r;
  }
  return true;
}

TEST(Hierarchical, JoinsAnyTwoAlgorithms) {
  for (Collective c : hierarchical().serves) {
    int proved = 0;
    for (const auto& [inner, a] : algorithms())
      for (const auto& [outer, b] : algorithms()) {
        if (inner == "hierarchical" || outer == "hierarchical") continue;
        proved += proves(
            {.operation = {.collective = c, .root = rooted(c) ? 6 : 0}, .dims = {4, 4}, .levels = {inner, outer}});
      }
    EXPECT_GE(proved, 1) << name(c);
  }
}

TEST(Hierarchical, RunsAnyAlgorithmAloneInSegments) {
  int proved = 0;
  for (Collective c : hierarchical().serves)
    for (const auto& [name, a] : algorithms())
      for (const std::int32_t segments : {1, 2}) {
        if (name == "hierarchical") continue;
        const Rank root = rooted(c) ? 3 : 0;
        proved +=
            proves({.operation = {.collective = c, .root = root}, .dims = {4}, .segments = segments, .levels = {name}});
        proved += proves({.operation = {.collective = c, .root = root},
                          .dims = {1, 4},
                          .segments = segments,
                          .levels = {name + ":2"}});
      }
  EXPECT_GE(proved, 100);
}

TEST(Hierarchical, JoinsThreeLevels) {
  for (const auto& levels : std::vector<std::vector<std::string>>{{"direct", "ring", "direct"},
                                                                  {"direct", "direct", "direct"},
                                                                  {"ring", "ring", "ring"},
                                                                  {"two_step", "direct", "ring"}}) {
    EXPECT_TRUE(proves({.dims = {2, 3, 2}, .levels = levels}));
    EXPECT_TRUE(proves({.dims = {3, 2, 2}, .channels = 2, .segments = 2, .levels = levels}));
  }
  for (Collective c : {Collective::all_to_all, Collective::gather, Collective::scatter, Collective::reduce_scatter,
                       Collective::all_gather, Collective::broadcast, Collective::reduce})
    EXPECT_TRUE(proves({.operation = {.collective = c, .root = rooted(c) ? 7 : 0}, .dims = {2, 3, 2}}));
}

// The pieces of different channels (lanes) must not mix, so that all ranks treat the lanes alike. Wherever an algorithm
// claims this symmetry, every rank's program is checked for it.
TEST(Hierarchical, JoinsLanes) {
  int proved = 0;
  for (const auto& [inner, a] : algorithms())
    for (const auto& [outer, b] : algorithms()) {
      if (inner == "hierarchical" || outer == "hierarchical") continue;
      for (const std::int32_t channels : {2, 3})
        proved += proves({.dims = {4, 4}, .channels = channels, .levels = {inner, outer}});
    }
  EXPECT_GE(proved, 100);
  for (const auto& levels : std::vector<std::vector<std::string>>{
           {"direct", "direct", "ring"}, {"ring", "direct", "direct"}, {"direct", "ring", "recursive_doubling"}})
    EXPECT_TRUE(proves({.dims = {2, 3, 4}, .channels = 4, .levels = levels}));
}

TEST(Hierarchical, LanesStayAlike) {
  EXPECT_EQ(symmetry_of(hierarchical(), {.dims = {4, 4, 8}, .channels = 4}).classes(), 1);
  EXPECT_EQ(symmetry_of(hierarchical(), {.dims = {4, 8}, .channels = 2, .levels = {"direct", "two_step"}}).classes(),
            8);
}

TEST(Hierarchical, TakesSeveralDimensionsForOneLevel) {
  EXPECT_TRUE(proves({.dims = {2, 2, 3}, .levels = {"direct:2", "ring"}}));
  EXPECT_TRUE(proves({.dims = {4, 2, 2}, .levels = {"direct", "torus:2"}}));
}

TEST(Hierarchical, SaysWhatIsWrongWithItsLevels) {
  const auto complaint = [](const std::vector<Rank>& dims, const std::vector<std::string>& levels) {
    return why([&] { make(hierarchical(), {.dims = dims, .levels = levels}); });
  };
  EXPECT_NE(complaint({4, 4}, {"ring"}).find("cover other dimensions"), std::string::npos);
  EXPECT_NE(complaint({4, 4}, {"ring", "nonsense"}).find("no algorithm is called 'nonsense'"), std::string::npos);
  EXPECT_NE(complaint({4, 4}, {"ring", "ring:x"}).find("ring:x"), std::string::npos);
  EXPECT_NE(complaint({4, 2}, {"ring", "ring", "nonsense"}).find("'nonsense' has no dimension left"),
            std::string::npos);
  EXPECT_NE(complaint({4, 4}, {"ring", "hierarchical"}).find("level of itself"), std::string::npos);
  EXPECT_NE(complaint({4, 4}, {"pairwise", "dissemination"}).find("cannot do"), std::string::npos);
}

TEST(Hierarchical, IsAloneInTakingLevels) {
  EXPECT_THROW(make("ring", {.dims = {4}, .levels = {"direct"}}), std::invalid_argument);
}

TEST(Hierarchical, MovesLessBetweenHostsThanAFlatRing) {
  const auto chunks_between_hosts = [](const Schedule& s, Rank per_host) {
    double moved = 0;
    for (Rank r = 0; r < s.ranks(); ++r)
      for (const Step& step : s.programs[r].steps)
        if (sends(step.op) && step.end.peer / per_host != r / per_host)
          moved += double(step.from.count) / s.task.pieces;
    return moved;
  };
  // Two hosts of eight ranks: each host's share crosses once in each direction, whatever the number of ranks.
  const Schedule joined = make("hierarchical", {.dims = {8, 2}, .levels = {"direct", "ring"}});
  EXPECT_DOUBLE_EQ(chunks_between_hosts(joined, 8), 2.0);
  const Schedule flat = make("direct", {.dims = {16}});
  EXPECT_DOUBLE_EQ(chunks_between_hosts(flat, 8), 128.0);
}

}  // namespace
}  // namespace trellis::schedule
