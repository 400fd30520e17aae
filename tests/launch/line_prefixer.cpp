#include "launch/line_prefixer.h"

#include <gtest/gtest.h>

#include <string>

namespace trellis::launch {
namespace {

TEST(LaunchLines, EveryLineHasItsRank) {
  LinePrefixer lines("[3] ");
  EXPECT_EQ(lines.take("one\ntwo\n\nthr"), "[3] one\n[3] two\n[3] \n");
  EXPECT_EQ(lines.take("ee"), "");
  EXPECT_EQ(lines.take("\n"), "[3] three\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(LaunchLines, APartialLastLineIsKept) {
  LinePrefixer lines("[0] ");
  EXPECT_EQ(lines.take("no end"), "");
  EXPECT_EQ(lines.finish(), "[0] no end\n");
  EXPECT_EQ(lines.finish(), "");
}

// The lines do not depend on how the bytes are cut into pieces.
TEST(LaunchLines, PiecesDoNotMatter) {
  const std::string text = "a\r\nb\rc\r\rd\n\r\ne";
  const std::string expected = "[1] a\r\n[1] b\n[1] c\n[1] d\n[1] \r\n[1] e\n";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    LinePrefixer lines("[1] ");
    std::string got;
    for (std::size_t at = 0; at < text.size(); at += piece) got += lines.take(text.substr(at, piece));
    EXPECT_EQ(got + lines.finish(), expected) << "pieces of " << piece;
  }
}

TEST(LaunchLines, ALineWithoutEndIsCut) {
  LinePrefixer lines("> ");
  const std::string got = lines.take(std::string((1 << 20) + 5, 'x'));
  EXPECT_EQ(got, "> " + std::string(1 << 20, 'x') + "\n");
  EXPECT_EQ(lines.finish(), "> xxxxx\n");
}

TEST(LaunchLines, AnyBytesPass) {
  LinePrefixer lines("");
  EXPECT_EQ(lines.take(std::string("\0\xff\x1b[1m\n", 7)), std::string("\0\xff\x1b[1m\n", 7));
}

}  // namespace
}  // namespace trellis::launch
