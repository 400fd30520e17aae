#include "ccl/rendezvous/interface_pattern.h"

#include <gtest/gtest.h>

namespace trellis::ccl {
namespace {

TEST(InterfacePattern, NamesAreSelectedByTheirBeginning) {
  EXPECT_TRUE(matches_interface("eth", "eth0"));
  EXPECT_TRUE(matches_interface("eth0", "eth01"));
  EXPECT_TRUE(matches_interface("ens,eth", "eth1"));
  EXPECT_FALSE(matches_interface("eth1", "eth0"));
  EXPECT_FALSE(matches_interface("eth0", "eth"));
  EXPECT_FALSE(matches_interface("eth0", "rdmap16s27-rdm"));
}

TEST(InterfacePattern, AnEqualsSignAsksForWholeNames) {
  EXPECT_TRUE(matches_interface("=eth0", "eth0"));
  EXPECT_FALSE(matches_interface("=eth0", "eth01"));
  EXPECT_TRUE(matches_interface("=eth0,eth1", "eth1"));
  EXPECT_FALSE(matches_interface("=eth0,eth1", "eth10"));
  EXPECT_TRUE(matches_interface("=eth0,=eth1", "eth1"));
}

TEST(InterfacePattern, ACaretExcludes) {
  EXPECT_FALSE(matches_interface("^docker,lo", "docker0"));
  EXPECT_FALSE(matches_interface("^docker,lo", "lo"));
  EXPECT_TRUE(matches_interface("^docker,lo", "ens5"));
  EXPECT_FALSE(matches_interface("^=lo,docker0", "docker0"));
  EXPECT_TRUE(matches_interface("^=lo,docker0", "docker01"));
  EXPECT_TRUE(matches_interface("^=lo,docker0", "lo1"));
}

TEST(InterfacePattern, NothingSelectsAllAndEmptyEntriesSelectNone) {
  EXPECT_TRUE(matches_interface("", "eth0"));
  EXPECT_TRUE(matches_interface("^", "eth0"));
  EXPECT_FALSE(matches_interface("=", "eth0"));
  EXPECT_FALSE(matches_interface("ens,,", "eth0"));
  EXPECT_TRUE(matches_interface(",eth0", "eth0"));
}

}  // namespace
}  // namespace trellis::ccl
