// What a sending lane keeps: small messages, a producer's bytes, checksums.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "ccl/transports/libfabric/lanes/eager_retransmit_queue.h"
#include "ccl/transports/libfabric/lanes/grant_checksums.h"
#include "ccl/transports/libfabric/lanes/producer_buffer.h"

namespace trellis::ccl::libfabric {
namespace {

using Numbers = std::vector<std::uint32_t>;

// Resends kept messages, at most `room`. Returns their numbers, and whether all were sent.
std::pair<Numbers, bool> resent(EagerRetransmitQueue& kept, std::size_t room = 100) {
  Numbers numbers;
  const bool all = kept.resend([&](const PacketHeader& p, std::span<const std::byte> bytes) {
    EXPECT_EQ(bytes.size(), p.bytes);
    if (numbers.size() == room) return false;
    numbers.push_back(p.number);
    return true;
  });
  return {numbers, all};
}

void keep(EagerRetransmitQueue& kept, std::uint32_t number) {
  const std::vector<std::byte> bytes(number % 5);
  kept.keep({.number = number, .bytes = bytes.size()}, bytes);
}

TEST(EagerRetransmitQueue, AreResentOnceThePathBeginsAgain) {
  EagerRetransmitQueue kept;
  for (const std::uint32_t n : {0xfffffffeU, 0xffffffffU, 0U, 1U}) keep(kept, n);
  EXPECT_EQ(resent(kept), std::pair(Numbers{}, true));
  kept.taken(0xffffffff);  // numbers wrap around
  kept.begin_again();
  EXPECT_EQ(resent(kept, 1), std::pair(Numbers{0xffffffff}, false));
  kept.taken(0);
  EXPECT_EQ(resent(kept), std::pair(Numbers({0, 1}), true));
  EXPECT_EQ(resent(kept), std::pair(Numbers{}, true));
  keep(kept, 2);
  EXPECT_EQ(resent(kept), std::pair(Numbers{}, true));
}

TEST(EagerRetransmitQueue, ThoseSentWhileOthersAreStillToBeResentFollowThem) {
  EagerRetransmitQueue kept;
  for (std::uint32_t n = 0; n < 3; ++n) keep(kept, n);
  kept.begin_again();
  EXPECT_EQ(resent(kept, 2), std::pair(Numbers({0, 1}), false));
  keep(kept, 3);  // queued behind message 2, which has yet to be resent
  EXPECT_EQ(resent(kept), std::pair(Numbers({2, 3}), true));
}

TEST(ProducerBuffer, AreMadeOnce) {
  std::vector<std::size_t> made;
  const Producer producer{
      .make =
          [](void* context, std::uint32_t, std::size_t offset, std::byte* piece, std::size_t bytes) {
            static_cast<std::vector<std::size_t>*>(context)->push_back(offset);
            std::fill_n(piece, bytes, std::byte(offset / 4 + 1));
          },
      .context = &made};
  const Sending s{.producer = &producer, .bytes = 10};
  ProducerBuffer produced;
  const auto piece = [&](std::size_t offset) {
    return *produced.piece(s, offset, std::min<std::size_t>(4, 10 - offset), 4, 2, nullptr);
  };
  for (const std::size_t offset : {0, 4, 4, 8}) EXPECT_EQ(piece(offset), std::byte(offset / 4 + 1));
  EXPECT_EQ(made, (std::vector<std::size_t>{0, 4, 8}));
  EXPECT_EQ(piece(4), std::byte{2});  // still kept: the third piece took the first one's slot
  produced.begin();
  EXPECT_EQ(*produced.whole(s), std::byte{1});
  EXPECT_EQ(*produced.whole(s), std::byte{1});
  EXPECT_EQ(made, (std::vector<std::size_t>{0, 4, 8, 0}));
}

TEST(GrantChecksums, AreSentUntilEachHasGone) {
  const std::array<std::byte, 6> bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
  GrantChecksums sums;
  sums.begin();
  for (const std::uint64_t offset : {0, 6}) {
    sums.add(std::span(bytes).first(2));
    sums.add(std::span(bytes).subspan(2));
    sums.end_run({.offset = offset, .bytes = bytes.size()});
  }
  std::vector<std::uint64_t> sent;
  const auto one = [&](const GrantChecksum& s) {
    EXPECT_EQ(s.checksum, kernels::crc32c(bytes, 0));
    sent.push_back(s.offset);
    return sent.size() != 2;
  };
  EXPECT_FALSE(sums.send_all(one));
  EXPECT_TRUE(sums.send_all(one));
  EXPECT_TRUE(sums.send_all(one));
  EXPECT_EQ(sent, (std::vector<std::uint64_t>{0, 6, 6}));
  sums.begin_again();
  EXPECT_TRUE(sums.send_all(one));
  EXPECT_EQ(sent.size(), 5U);
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
