// What follows from a machine's sizes, on machines that are not here.
#include <gtest/gtest.h>

#include <limits>

#include "ccl/descriptor_limit.h"
#include "ccl/run/stores_beside.h"

namespace trellis::ccl {
namespace {

using kernels::Stores;

TEST(MachineSizes, StrangersGetAFewDescriptorsOfAny) {
  for (const std::size_t limit : {std::size_t{0}, std::size_t{16}, std::size_t{64}, std::size_t{256}, std::size_t{1024},
                                  std::size_t{1} << 20, std::numeric_limits<std::size_t>::max()}) {
    EXPECT_GE(most_silent(limit), 4U) << limit;
    EXPECT_LE(most_silent(limit), 64U) << limit;
    EXPECT_GE(most_greeting(limit), 4U) << limit;
    if (limit < 16) continue;
    EXPECT_LE(most_silent(limit) + most_greeting(limit), limit / 2) << limit;
  }
  EXPECT_EQ(most_silent(256), 8U);
  EXPECT_EQ(most_greeting(256), 64U);
}

TEST(MachineSizes, ResultsBypassACacheThatTheyDoNotFit) {
  constexpr std::size_t xeon = std::size_t{300} << 20, small = std::size_t{64} << 10;
  EXPECT_EQ(stores_beside(xeon, xeon, 1), Stores::cached);
  EXPECT_EQ(stores_beside(xeon + 1, xeon, 1), Stores::streaming);
  EXPECT_EQ(stores_beside(xeon / 512, xeon, 512), Stores::cached);
  EXPECT_EQ(stores_beside(xeon / 512 + 1, xeon, 512), Stores::streaming);
  EXPECT_EQ(stores_beside(std::size_t{1} << 40, 0, 2), Stores::cached);  // no such cache is known
  EXPECT_EQ(stores_beside(1, small, 100'000), Stores::streaming);        // a share of less than a byte
}

}  // namespace
}  // namespace trellis::ccl
