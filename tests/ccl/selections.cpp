// Selection tables: what they say, and what is wrong with them.
#include <gtest/gtest.h>

#include <stdexcept>

#include "ccl/selector.h"
#include "schedule/algorithm.h"

namespace trellis::ccl {
namespace {

using kernels::DType;
using schedule::Collective;

constexpr const char* table = R"(# a comment, and blank lines

all_reduce 2 0 recursive_doubling      # another
all_reduce 2 65536 ring*2/4
all_reduce 2 1024 mesh bf16
all_reduce 8 0 mesh
all_gather 4 0 direct
)";

std::string first(Collective c, schedule::Rank ranks, std::uint64_t bytes, DType type = DType::f32) {
  const auto choices = Selections::read(table).choices(c, ranks, bytes, type);
  return choices.empty() ? "nothing" : text_of(choices.front());
}

TEST(Selections, TheLastRuleThatBeginsAtTheSizeOrBelow) {
  EXPECT_EQ(first(Collective::all_reduce, 2, 0), "recursive_doubling");
  EXPECT_EQ(first(Collective::all_reduce, 2, 65535), "recursive_doubling");
  EXPECT_EQ(first(Collective::all_reduce, 2, 65536), "ring*2/4");
  EXPECT_EQ(first(Collective::broadcast, 2, 8), "nothing");
}

TEST(Selections, TheNearestNumberOfRanksCounts) {
  EXPECT_EQ(first(Collective::all_reduce, 3, 8), "recursive_doubling");
  EXPECT_EQ(first(Collective::all_reduce, 64, 8), "mesh");
  EXPECT_EQ(first(Collective::all_gather, 1000, 8), "direct");
}

TEST(Selections, RulesOfATypeComeBeforeThoseOfAll) {
  EXPECT_EQ(first(Collective::all_reduce, 2, 1 << 20, DType::bf16), "mesh");
  EXPECT_EQ(first(Collective::all_reduce, 2, 8, DType::bf16), "recursive_doubling");
  const auto all = Selections::read(table).choices(Collective::all_reduce, 2, 1 << 20, DType::bf16);
  EXPECT_EQ(all.size(), 3U);  // and the others after it, for what it can't serve
}

TEST(Selections, TextReadsBack) {
  const std::string text = Selections::read(table).text();
  EXPECT_EQ(Selections::read(text).text(), text);
  EXPECT_NE(text.find("\nall_reduce 2 1024 mesh bf16\n"), std::string::npos) << text;
}

TEST(Selections, WhatIsWrongIsNamedWithItsLine) {
  const auto complaint = [](const char* text) -> std::string {
    try {
      Selections::read(text);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(complaint("all_reduce 2 0\n"), "line 1: expected: collective ranks from_bytes algorithm [type]");
  EXPECT_EQ(complaint("\nall_reduce -2 0 ring\n"), "line 2: '-2' is no number of ranks: expected a whole number");
  EXPECT_NE(complaint("all_reduce 2 0 ring f33").find("line 1: "), std::string::npos);
  EXPECT_NE(complaint("all_reduc 2 0 ring").find("all_reduce"), std::string::npos);
  EXPECT_NE(complaint("all_reduce 2 0 ring*0").find("ALGORITHM[*CHANNELS][/SEGMENTS]"), std::string::npos);
}

TEST(Selections, TheBuiltInTableNamesAlgorithmsThatExist) {
  ASSERT_FALSE(Selections::built_in().rules().empty());
  for (const Rule& rule : Selections::built_in().rules())
    EXPECT_NO_THROW(schedule::algorithm_named(rule.choice.algorithm)) << text_of(rule);
}

}  // namespace
}  // namespace trellis::ccl
