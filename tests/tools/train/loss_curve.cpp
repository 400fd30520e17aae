// Curves of losses: what is read of a run, and the lines of the grid behind it.
#include "tools/train/loss_curve.h"

#include <gtest/gtest.h>

#include "tests/folder.h"
#include "tests/why.h"
#include "tools/picture/axes.h"

namespace trellis::tools {
namespace {

using Points = std::vector<std::pair<double, double>>;

TEST(LossCurve, TheLastMeanIsOfTheStepsThatAreLeft) {
  const Folder folder;
  folder.put("metrics.csv", "step,loss\n1,4\n2,2\n3,1\n");
  const auto points = [&](int mean) { return losses_of(folder.path(), mean).front().points; };
  EXPECT_EQ(points(1), (Points{{1, 4}, {2, 2}, {3, 1}}));
  EXPECT_EQ(points(2), (Points{{1.5, 3}, {3, 1}}));
  EXPECT_EQ(points(3), (Points{{2, 7.0 / 3}}));
  EXPECT_EQ(points(10), (Points{{2, 7.0 / 3}}));
}

TEST(LossCurve, OtherTablesAreRefusedByTheNamesOfTheirColumns) {
  const Folder folder;
  const auto refusal = [&](const char* text) {
    folder.put("metrics.csv", text);
    return why([&] { losses_of(folder.path()); });
  };
  const std::string said = refusal("size,time\n8,12.5\n16,12.6\n");
  EXPECT_NE(said.find("metrics.csv: expected a first line 'step,loss'"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("and it is 'size,time'")) << said;
  EXPECT_TRUE(refusal("").ends_with("and it is ''"));
  EXPECT_TRUE(refusal("1,4\n2,2\n").ends_with("and it is '1,4'"));
  EXPECT_NE(refusal("step,loss,c,d,e,f,g,h,accuracy\n1,4,,,,,,,0.5\n").find("validation_loss is the 9th"),
            std::string::npos);
}

// From 2^53 on, a double does not change when a small number is added.
TEST(LossCurve, AxesOfLargeNumbersHaveFewLines) {
  for (const double low : {0.0, 1e15, 1e17, -1e17, 1e300})
    for (const double range : {0.0, 1.0, 16.0}) {
      const std::vector<double> ticks = draw::linear_axis(low, low + range, 0, 1).ticks();
      EXPECT_GE(ticks.size(), 1u) << low << " " << range;
      EXPECT_LE(ticks.size(), 11u) << low << " " << range;
    }
  EXPECT_EQ(draw::linear_axis(0, 1, 0, 1).ticks().size(), 6u);
}

}  // namespace
}  // namespace trellis::tools
