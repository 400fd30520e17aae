#include "tools/schedule/request_options.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tools/schedule/schedule_summary.h"
#include "tools/schedule/verify_sweep.h"

namespace trellis::tools {
namespace {

using schedule::Rank;
using Ranks = std::vector<Rank>;

TEST(RequestOptions, Shapes) {
  EXPECT_EQ(parse_shape("8"), Ranks({8}));
  EXPECT_EQ(parse_shape("4x4x2"), Ranks({4, 4, 2}));
  for (const char* bad : {"", "x", "4x", "x4", "4xx4", "-4", "+4", " 4", "4 ", "0", "4x0", "4*4", "2147483648", "4X4"})
    EXPECT_THROW(parse_shape(bad), std::invalid_argument) << bad;
}

TEST(RequestOptions, CountsOfRanks) {
  EXPECT_EQ(parse_rank_counts("3"), Ranks({3}));
  EXPECT_EQ(parse_rank_counts("5,1..3,2"), Ranks({1, 2, 3, 5}));
  for (const char* bad :
       {"", ",", "1,", "0", "2..1", "1..", "..2", "1...3", "1..2..3", "-1", "1..2000000000", "1..9999999"})
    EXPECT_THROW(parse_rank_counts(bad), std::invalid_argument) << bad;
}

TEST(RequestOptions, PairsNamesAndSpans) {
  EXPECT_EQ(parse_pairs("0:1,12:3"), std::vector<schedule::Pair>({{0, 1}, {12, 3}}));
  EXPECT_EQ(parse_names("direct,ring"), std::vector<std::string>({"direct", "ring"}));
  EXPECT_EQ(parse_span("3..7").last, 7);
  EXPECT_EQ(parse_span("3").last, 3);
  for (const char* bad : {"", "0", "0:", ":1", "0:1,", "0:1:2", "0-1"})
    EXPECT_THROW(parse_pairs(bad), std::invalid_argument) << bad;
  for (const char* bad : {"", ",", "a,,b", "a,"}) EXPECT_THROW(parse_names(bad), std::invalid_argument) << bad;
  for (const char* bad : {"", "3..", "7..3", "a"}) EXPECT_THROW(parse_span(bad), std::invalid_argument) << bad;
}

TEST(ScheduleSweep, ShapesMultiplyToTheirRanks) {
  for (Rank n = 1; n <= 96; ++n) {
    const auto all = shapes(n);
    EXPECT_EQ(all.front(), Ranks({n}));
    EXPECT_LE(all.size(), 8u) << n;
    for (const Ranks& dims : all) EXPECT_EQ(std::accumulate(dims.begin(), dims.end(), Rank{1}, std::multiplies<>()), n);
  }
}

TEST(SchedulePace, ARingTakesARoundForEachHop) {
  for (Rank n : {1, 2, 3, 8, 17}) {
    const ScheduleSummary found = summary(schedule::make("ring", {.dims = {n}}));
    EXPECT_EQ(found.rounds, 2 * (n - 1));
    EXPECT_EQ(found.transfers, std::int64_t{2} * n * (n - 1));
    EXPECT_EQ(found.messages.least, found.messages.most);
  }
}

}  // namespace
}  // namespace trellis::tools
