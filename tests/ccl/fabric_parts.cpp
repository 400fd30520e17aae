// Parts of the transport over libfabric that need no fabric.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include "ccl/transports/libfabric/data/landings.h"
#include "ccl/transports/libfabric/presence/public_state.h"
#include "ccl/transports/libfabric/wire/hostile.h"

namespace trellis::ccl::libfabric {
namespace {

TEST(Landings, APieceCountsOnceWhateverTheOrder) {
  Landings all;
  const std::uint32_t a = all.open(3, 7), b = all.open(1, 2);
  EXPECT_EQ(all.land(a + 2), 7);
  EXPECT_EQ(all.land(a + 2), -1);
  EXPECT_EQ(all.land(b), 2);
  EXPECT_TRUE(all.complete(b));
  EXPECT_EQ(all.land(a), 7);
  EXPECT_FALSE(all.complete(a));
  EXPECT_EQ(all.landed(a), 2U);
  EXPECT_EQ(all.land(a + 1), 7);
  EXPECT_TRUE(all.complete(a));
}

TEST(Landings, WhatComesAfterTheEndIsIgnored) {
  Landings all;
  const std::uint32_t old = all.open(2, 1);
  all.close(old);
  EXPECT_EQ(all.land(old), -1);
  const std::uint32_t next = all.open(2, 3);  // in the same place
  EXPECT_NE(next, old);
  EXPECT_EQ(all.land(old), -1);
  EXPECT_EQ(all.land(next + 2), -1);  // it has two pieces
  EXPECT_EQ(all.land(0xFFF0'0000U), -1);
  EXPECT_EQ(all.landed(next), 0U);
}

TEST(Hostility, IsReadByName) {
  const Hostility h = hostility_in("seed=9,reorder=20,hold=3,refuse=1,credits=2,fail=4,only=1,stall=5");
  EXPECT_EQ(h.seed, 9U);
  EXPECT_EQ(h.reorder, 20);
  EXPECT_EQ(h.hold, 3);
  EXPECT_EQ(h.credits, 2);
  EXPECT_EQ(h.stall, 5);
  EXPECT_EQ(h.only, 1);
  for (const char* wrong : {"speed=1", "seed", "seed=", "seed=x", "reorder=1;fail=2", "hold=0"})
    EXPECT_THROW(hostility_in(wrong), std::invalid_argument) << wrong;
}

TEST(PublicState, ComesBackWholeOrNotAtAll) {
  PublicState s{.address = std::vector<std::byte>(5, std::byte{1}),
                .note = std::vector<std::byte>(3, std::byte{2}),
                .board = std::vector<std::byte>(7, std::byte{3})};
  s.head.version = 12;
  s.head.activity.waits_for = 4;
  std::vector<std::byte> bytes(public_bytes(s));
  write_public(s, bytes);
  PublicState read;
  ASSERT_TRUE(read_public(bytes, read));
  EXPECT_EQ(read.head.version, 12U);
  EXPECT_EQ(read.head.activity.waits_for, 4);
  EXPECT_EQ(read.address, s.address);
  EXPECT_EQ(read.note, s.note);
  EXPECT_EQ(read.board, s.board);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(read_public(std::span(bytes).first(size), read)) << size;
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
