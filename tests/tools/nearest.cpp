#include "tools/nearest.h"

#include <gtest/gtest.h>

namespace trellis::tools {
namespace {

TEST(Nearest, ASlipIsFoundAndAnotherWordIsNot) {
  const std::vector<std::string> known = {"ring", "recursive_doubling", "list"};
  EXPECT_EQ(nearest("rinng", known), "ring");
  EXPECT_EQ(nearest("recursive-doublng", known), "recursive_doubling");
  EXPECT_EQ(nearest("lst", known), "list");
  EXPECT_EQ(nearest("pipeline", known), "");
  EXPECT_EQ(nearest("x", {"-h"}), "");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace trellis::tools
