// The notices of ranks in a split or shrink, as bytes, and the boards on which they are posted.
#include "ccl/transports/membership_notice.h"

#include <gtest/gtest.h>

#include "ccl/transports/segment/segment.h"

namespace trellis::ccl {
namespace {

MembershipNotice full() {
  return {.call = MembershipNotice::Call::split,
          .stage = MembershipNotice::Stage::offers,
          .attempt = 7,
          .broken = 3,
          .blames = 9,
          .wish = {.color = 4, .key = -5},
          .members = {0, 3, 8, 9},
          .offer = std::vector<std::byte>(most_offer_bytes, std::byte{0xA5})};
}

TEST(MembershipNotice, ComesBackFromItsBytes) {
  EXPECT_EQ(notice_in(bytes_of(full(), 10), 10), full());
  EXPECT_EQ(notice_in(bytes_of({}, 1), 1), MembershipNotice{});
  EXPECT_EQ(notice_in({}, 5), MembershipNotice{});
  EXPECT_LE(bytes_of(full(), 10).size(), most_notice_bytes(10));
}

TEST(MembershipNotice, WhatNoRankWritesIsRefused) {
  const std::vector<std::byte> right = bytes_of(full(), 10);
  for (std::size_t size = 1; size < right.size(); ++size)
    EXPECT_THROW(notice_in(std::span(right).first(size), 10), std::invalid_argument) << size;
  for (const std::size_t at : {0, 1, 2, 3, 12}) {  // call, stage, length, blame
    std::vector<std::byte> wrong = right;
    wrong[at] = std::byte{0x7F};
    EXPECT_THROW(notice_in(wrong, 10), std::invalid_argument) << at;
  }
  MembershipNotice large = full();
  large.offer.resize(most_offer_bytes + 1);
  EXPECT_THROW(bytes_of(large, 10), std::invalid_argument);
}

class KeyValueMap : public testing::Test {
 protected:
  KeyValueMap() { Segment::begin(memory_.data(), shape_); }
  const SegmentShape shape_{2, 1, 64};
  struct alignas(4096) Page {
    std::byte bytes[4096] = {};
  };
  std::vector<Page> memory_{shape_.bytes() / sizeof(Page) + 1};
  const Segment segment_{memory_.data(), shape_};
};

TEST_F(KeyValueMap, HasWhatWasPostedLast) {
  EXPECT_TRUE(segment_.posted(1).empty());
  for (std::size_t size : {std::size_t{1}, std::size_t{13}, most_notice_bytes(2), std::size_t{0}}) {
    const std::vector<std::byte> bytes(size, std::byte{42});
    segment_.post(1, bytes);
    EXPECT_EQ(segment_.posted(1), bytes);
    EXPECT_TRUE(segment_.posted(0).empty());
  }
  EXPECT_THROW(segment_.post(1, std::vector<std::byte>(4096)), std::invalid_argument);
}

TEST_F(KeyValueMap, ALengthBeyondItIsRefused) {
  const std::vector<std::byte> some(8, std::byte{42});
  segment_.post(0, some);
  auto* words = reinterpret_cast<std::uint64_t*>(segment_.base() + shape_.boards_at());
  for (std::size_t i = 0; i < 2 * shape_.board_words(); ++i)
    if (words[i] == some.size()) words[i] = 1'000'000;
  EXPECT_THROW(segment_.posted(0), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::ccl
