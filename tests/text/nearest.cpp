#include "text/nearest.h"

#include <gtest/gtest.h>

namespace trellis::text {
namespace {

TEST(Nearest, ASlipIsFoundAndAnotherWordIsNot) {
  const std::vector<std::string> known = {"ring", "recursive_doubling", "list"};
  EXPECT_EQ(nearest("rinng", known), "ring");
  EXPECT_EQ(nearest("recursive-doublng", known), "recursive_doubling");
  EXPECT_EQ(nearest("lst", known), "list");
  EXPECT_EQ(nearest("pipeline", known), "");
  EXPECT_EQ(nearest("x", {"-h"}), "");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(nearest("ring", {std::string(1 << 20, 'r'), "rings"}), "rings");
  EXPECT_EQ(nearest(std::string(1 << 20, 'r'), {std::string(1 << 20, 's')}), "");
}

TEST(Nearest, TheEndOfAnErrorMessage) {
  EXPECT_EQ(did_you_mean("rinng", {"ring", "list"}), "; did you mean 'ring'?");
  EXPECT_EQ(did_you_mean("pipeline", {"ring", "list"}), "");
}

}  // namespace
}  // namespace trellis::text
