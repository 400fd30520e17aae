// How the processes of a new communicator learn of each other through the store, and what they hear when that fails.
#if __has_include(<rdma/fabric.h>)

#include "ccl/transports/libfabric/control/member_exchange.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

Member member(Rank r) {
  return {.address = std::vector(20, std::byte(r)), .host = fmt::format("h{}", r), .home = "h", .process = r + 1};
}

// The error with which the rank's exchange of members ends; "": it has learnt of all others.
std::string heard(Store& store, Rank rank, Rank ranks, Clock::duration patience) {
  CommunicatorNonce origin{.identity = 7};
  try {
    exchange_members(store, rank, ranks, member(rank), origin, Clock::now() + patience);
    return "";
  } catch (const PeerLost& lost) {
    return fmt::format("lost {}: {}", lost.rank, lost.what());
  } catch (const std::exception& e) {
    return e.what();
  }
}

TEST(Members, ALaterRankHearsWhomRankZeroHasMissed) {
  const auto store = memory_store();
  EXPECT_EQ(heard(*store, 0, 3, 1ms), "lost 1: rank 1 did not join in time");
  EXPECT_EQ(heard(*store, 2, 3, 20s), "lost 1: rank 1 did not join in time, as rank 0 found");
  EXPECT_EQ(heard(*store, 1, 3, 20s), "lost 1: rank 1 did not join in time, as rank 0 found");
}

// Rank 0 publishes the members in store entries of 256 each. The missing member belongs to the second entry; the first
// one is published by then.
TEST(Members, SoItDoesOfAMemberOfAFurtherNote) {
  constexpr Rank ranks = 300, missing = 280;
  const auto store = memory_store();
  for (Rank r = 1; r < ranks; ++r)
    if (r != missing) heard(*store, r, ranks, 0s);
  EXPECT_EQ(heard(*store, 0, ranks, 1ms), "lost 280: rank 280 did not join in time");
  EXPECT_EQ(heard(*store, missing, ranks, 20s), "lost 280: rank 280 did not join in time, as rank 0 found");
}

TEST(Members, SoItDoesOfANoteThatIsDamaged) {
  const auto store = memory_store();
  store->set("fabric/1", std::as_bytes(std::span("?", 1)));
  const std::string own = heard(*store, 0, 3, 20s);
  EXPECT_NE(own.find("damaged"), own.npos) << own;
  EXPECT_EQ(heard(*store, 2, 3, 20s), "rank 0 has given up joining: " + own);
}

TEST(Members, ANoteForAllThatIsDamagedIsRefused) {
  for (const std::size_t size : {0, 3, 6, 12, 20}) {
    const auto store = memory_store();
    Bytes note(size, std::byte{0});
    if (size == 6) note.front() = std::byte{2};
    store->set("fabric/all/0", note);
    const std::string said = heard(*store, 1, 2, 20s);
    EXPECT_NE(said.find("damaged"), said.npos) << size << ": " << said;
  }
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
