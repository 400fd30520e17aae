// verify is attacked: of many random edits to good schedules none may be accepted that changes the meaning. An accepted
// one must come out right however unkindly it is executed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "schedule/verify.h"
#include "tests/schedule/chaos.h"
#include "tests/schedule/damage.h"
#include "tests/schedule/requests.h"

namespace trellis::schedule {
namespace {

constexpr int edits_wanted = 20'000;
constexpr Rank most_ranks = 8;
constexpr int chaotic_runs = 4;

std::vector<Case> victims() {
  std::vector<Case> all;
  each_case(most_ranks, [&](const Case& c) {
    if (c.request.ranks() < 2 || c.request.ranks() == 3) return;
    if (c.request.ranks() == 8 || (c.request.ranks() % 2 == 0 && c.request.dims.size() > 1) || all.size() % 7 == 0)
      all.push_back(c);
  });
  return all;
}

bool unchanged(const Schedule& a, const Schedule& b) {
  return std::ranges::equal(a.programs, b.programs, [](const Program& x, const Program& y) { return same(x, y); });
}

TEST(Mutation, NoEditPassesThatChangesTheMeaning) {
  std::mt19937 random(20'000);
  int edits = 0, caught = 0, harmless = 0;
  auto cases = victims();
  ASSERT_FALSE(cases.empty());
  std::shuffle(cases.begin(), cases.end(), random);
  for (std::size_t at = 0; edits < edits_wanted; ++at) {
    const Case& c = cases[at % cases.size()];
    const Schedule good = make(*c.algorithm, c.request);
    for (int i = 0; i < 12; ++i) {
      Schedule edited = good;
      const std::string what = damage(edited, random);
      if (what.empty() || unchanged(edited, good)) continue;
      ++edits;
      const Report report = verify(edited);
      if (!report.ok()) {
        ++caught;
        EXPECT_FALSE(report.text().empty());
        continue;
      }
      ++harmless;
      for (int run = 0; run < chaotic_runs; ++run)
        ASSERT_EQ(run_in_chaos(edited, random), "") << c.text() << ": an edit that " << what << " was accepted";
    }
  }
  fmt::print("{} edits: {} caught, {} harmless\n", edits, caught, harmless);
  EXPECT_GT(caught, edits / 2);
}

TEST(Mutation, ChaosItselfCatchesFaults) {
  std::mt19937 random(7);
  Schedule s = make("ring", {.dims = {4}});
  for (int run = 0; run < 50; ++run) EXPECT_EQ(run_in_chaos(s, random), "");
  for (Program& program : s.programs)
    for (Step& step : program.steps) step.after = {};
  int wrong = 0;
  for (int run = 0; run < 50; ++run) wrong += !run_in_chaos(s, random).empty();
  EXPECT_GT(wrong, 40);
}

}  // namespace
}  // namespace trellis::schedule
