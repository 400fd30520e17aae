#include "text/words.h"

#include <gtest/gtest.h>

namespace trellis::text {
namespace {

using List = std::vector<std::string_view>;

TEST(Words, AreBetweenBlanks) {
  EXPECT_EQ(words(" level\ttorus  4x4\r\n"), (List{"level", "torus", "4x4"}));
  EXPECT_EQ(words(" \t\r\n"), List{});
  EXPECT_EQ(words(""), List{});
  EXPECT_EQ(words_before_comment("a b# c"), (List{"a", "b"}));
  EXPECT_EQ(words_before_comment("# c"), List{});
}

TEST(Words, PartsAreOneMoreThanTheirSeparators) {
  EXPECT_EQ(split("a,b", ','), (List{"a", "b"}));
  EXPECT_EQ(split(",a,,", ','), (List{"", "a", "", ""}));
  EXPECT_EQ(split("", ','), List{""});
  EXPECT_EQ(split(" a", ','), List{" a"});
}

TEST(Words, BlanksAtTheEndsAreTrimmed) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \r\n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Words, AreFoundByEnumerator) {
  enum class Size { small, large };
  static_assert(word_of(Size::large, {"small", "large"}) == "large");
  EXPECT_EQ(word_of(Size::small, {"small", "large"}), "small");
  EXPECT_EQ(word_of(static_cast<Size>(2), {"small", "large"}), "?");
}

TEST(Words, LowerCase) { EXPECT_EQ(lower("Trn2.48xLARGE, 8 MiB_"), "trn2.48xlarge, 8 mib_"); }

}  // namespace
}  // namespace trellis::text
