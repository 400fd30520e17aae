// Programs built on demand, and symmetry classes for machines too large to write out.
#include "schedule/proof/folded.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/schedule/requests.h"

namespace trellis::schedule {
namespace {

TEST(Symmetry, NamesClassesAndImages) {
  const Symmetry s{{{SymmetryAxis::Kind::rotate, 4}, {SymmetryAxis::Kind::distinct, 3}, {SymmetryAxis::Kind::flip, 2}}};
  EXPECT_EQ(s.ranks(), 24);
  EXPECT_EQ(s.classes(), 3);
  EXPECT_EQ(s.representatives(), (std::vector<Rank>{0, 4, 8}));
  EXPECT_EQ(s.representative(3 + 2 * 4 + 12), 8);
  // The shift that takes rank (0,2,0) to (1,2,1) takes its neighbour (3,1,0) to (0,1,1).
  EXPECT_EQ(s.image(8, 1 + 8 + 12, 3 + 4), 0 + 4 + 12);
}

TEST(Folded, AgreesWithTheWrittenOutFormAtEverySmallSize) {
  each_case(8, [](const Case& c) {
    if (c.request.operation.in_place || c.request.segments > 1 || c.request.operation.root != 0) return;
    const FoldedReport report = verify_folded(*c.algorithm, c.request, 4);
    EXPECT_TRUE(report.ok()) << c.text() << ": " << report.fault->text;
    EXPECT_FALSE(report.proved.empty());
  });
}

TEST(Folded, ProvesWhatIsTooLargeToWriteOut) {
  const FoldedReport ring = verify_folded(algorithm_named("ring"), {.dims = {2000}}, 3);
  EXPECT_TRUE(ring.ok()) << ring.fault->text;
  EXPECT_EQ(ring.classes, 1);
  const FoldedReport joined =
      verify_folded(algorithm_named("hierarchical"), {.dims = {16, 1000}, .levels = {"direct", "ring"}}, 3);
  EXPECT_TRUE(joined.ok()) << joined.fault->text;
}

TEST(Folded, RefusesToSayWhatItDidNotLookAt) {
  const Request pair_far_out{.operation = {.collective = Collective::permute, .pairs = {{3000, 3999}, {3999, 3000}}},
                             .dims = {4000}};
  EXPECT_THROW(verify_folded(algorithm_named("direct"), pair_far_out), std::invalid_argument);
  const FoldedReport rooted = verify_folded(
      algorithm_named("ring"), {.operation = {.collective = Collective::broadcast, .root = 4321}, .dims = {5000}}, 2);
  EXPECT_TRUE(rooted.ok()) << rooted.fault->text;
  EXPECT_GT(rooted.steps, 0);
}

TEST(Folded, TellsWhenRanksAreNotAlike) {
  const Schedule s = make("ring", {.dims = {6}});
  const Symmetry symmetry{{{SymmetryAxis::Kind::rotate, 6}}};
  EXPECT_FALSE(find_difference(symmetry, 0, s.programs[0], 3, s.programs[3]));
  Program other = s.programs[3];
  other.steps[4].end.peer = 5 - other.steps[4].end.peer % 2;
  EXPECT_TRUE(find_difference(symmetry, 0, s.programs[0], 3, other));
  other = s.programs[3];
  other.steps[4].from.count += 1;
  EXPECT_TRUE(find_difference(symmetry, 0, s.programs[0], 3, other));
  other = s.programs[3];
  other.steps.pop_back();
  EXPECT_TRUE(find_difference(symmetry, 0, s.programs[0], 3, other));
  other = s.programs[3];
  const auto waiting = std::ranges::find_if(other.steps, [](const Step& step) { return step.after.count > 0; });
  other.set_after(*waiting, {});
  EXPECT_TRUE(find_difference(symmetry, 0, s.programs[0], 3, other));
}

TEST(Folded, MakesOneProgramOfAHugeMachine) {
  const Program p = make_program(algorithm_named("ring"), {.dims = {100'000}}, 54'321);
  EXPECT_EQ(p.steps.size(), 4u * 99'999);
}

}  // namespace
}  // namespace trellis::schedule
