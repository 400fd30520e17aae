#include "text/number_parsing.h"

#include <gtest/gtest.h>

#include "tests/why.h"

namespace trellis::text {
namespace {

TEST(Number, IsAllOfTheTextOrNone) {
  EXPECT_EQ(number<int>("12"), 12);
  EXPECT_EQ(number<int>("-12"), -12);
  EXPECT_EQ(number<double>("1.5e3"), 1500);
  EXPECT_EQ(number<std::uint64_t>("18446744073709551615"), ~std::uint64_t{0});
  for (const char* bad : {"", " 1", "1 ", "+1", "1x", "x1", "0x10", "1.5", "-", "2147483648", "-2147483649"})
    EXPECT_EQ(number<int>(bad), std::nullopt) << bad;
  EXPECT_EQ(number<std::uint64_t>("-1"), std::nullopt);
  EXPECT_EQ(number<double>("1e999"), std::nullopt);
  EXPECT_EQ(number<int>(std::string_view("12").substr(0, 1)), 1);  // what follows the view is not read
}

TEST(Number, IsWithinItsBounds) {
  EXPECT_EQ(number<int>("0", 0), 0);
  EXPECT_EQ(number<int>("-1", 0), std::nullopt);
  EXPECT_EQ(number<int>("7", 0, 7), 7);
  EXPECT_EQ(number<int>("8", 0, 7), std::nullopt);
  EXPECT_EQ(number<std::uint16_t>("65535", 1), 65535);
  EXPECT_EQ(number<double>("0.5", 0, 1), 0.5);
  for (const char* endless : {"nan", "inf", "-inf"}) {
    EXPECT_TRUE(number<double>(endless)) << endless;
    EXPECT_EQ(number<double>(endless, 0), std::nullopt) << endless;
    EXPECT_EQ(finite_number(endless), std::nullopt) << endless;
  }
  EXPECT_EQ(finite_number("-1e300"), -1e300);
}

TEST(Number, IsTakenOffTheFront) {
  std::string_view rest = "64KB";
  EXPECT_EQ(take_number<int>(rest), 64);
  EXPECT_EQ(rest, "KB");
  for (const char* none : {"KB", "", " 1", "99999999999"}) {
    rest = none;
    EXPECT_EQ(take_number<int>(rest), std::nullopt) << none;
    EXPECT_EQ(rest, none);
  }
}

TEST(Number, ACountIsRefusedWithItsNameAndBounds) {
  EXPECT_EQ(count("-N", "2", 0, 9), 2);
  EXPECT_EQ(why([] { count("-N", "2", 1, 1); }), "-N 2: expected 1");
  EXPECT_EQ(why([] { count("-S", "2", 0, 1); }), "-S 2: expected 0 or 1");
  EXPECT_EQ(why([] { count("-r", "x", 0, 9); }), "-r x: expected a whole number from 0 to 9");
  EXPECT_EQ(range_text(1, 1), "1");
  EXPECT_EQ(range_text(0, 1), "0 or 1");
  EXPECT_EQ(range_text(0, 3), "0 to 3");
}

}  // namespace
}  // namespace trellis::text
