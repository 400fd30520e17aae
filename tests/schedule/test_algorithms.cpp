// What every registered algorithm must do, found by walking the registry.
#include <gtest/gtest.h>

#include "schedule/folded.h"
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
    const Schedule whole = make(*c.algorithm, c.request);
    const Symmetry symmetry = symmetry_of(*c.algorithm, c.request);
    ASSERT_EQ(symmetry.ranks(), whole.ranks()) << c.text();
    for (Rank r = 0; r < whole.ranks(); ++r) {
      const Rank like = symmetry.representative(r);
      const auto fault = find_difference(symmetry, like, whole.programs[like], r, whole.programs[r]);
      EXPECT_FALSE(fault) << c.text() << ": " << fault->text;
    }
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
  Request request{.collective = GetParam()->serves.front(), .dims = {0}};
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
