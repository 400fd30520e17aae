// The report of a search for layouts in which none fits.
#include <gtest/gtest.h>

#include "tools/layouts/search_words.h"

namespace trellis::tools {
namespace {

TEST(LayoutSearch, WhatWasStoppedSaysNoMoreThanItLookedAt) {
  SearchedMachine m{.name = "trn1.32xlarge", .search = {.memory_of_rank = 16.0 * (1 << 30), .stopped = true}};
  EXPECT_NE(search_text(m, 5).find("no layout was priced before the search was stopped"), std::string::npos);
  m.search.too_large = 1;
  EXPECT_NE(search_text(m, 5).find("none of those looked at fits into 16.0 GiB a rank"), std::string::npos);
  m.search.stopped = false;
  EXPECT_NE(search_text(m, 5).find("none fits into 16.0 GiB a rank"), std::string::npos);
}

}  // namespace
}  // namespace trellis::tools
