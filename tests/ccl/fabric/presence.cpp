// What ranks learn of each other over control, without a fabric.
#if __has_include(<rdma/fabric.h>)

#include "ccl/transports/libfabric/presence/presence.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

// One on each host: "h0", "h1", ...
Presence presence_of(Rank rank, Rank ranks) {
  std::vector<std::size_t> places(static_cast<std::size_t>(ranks));
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::vector<Member> members;
  for (Rank r = 0; r < ranks; ++r) members.push_back({.host = "h" + std::to_string(r)});
  return {7, rank, std::move(places), std::move(members), 10s, 1};
}

// A message from one to the other.
void tell(Presence& from, Presence& to) {
  std::vector<std::byte> message;
  message.resize(from.write_for(to.rank(), 0, 4096, message));
  PublicState state;
  ASSERT_TRUE(read_public(message, state));
  to.hear(state, 0);
}

TEST(Presence, NobodyIsMissingWhenAllHaveJoined) {
  Presence zero = presence_of(0, 2), one = presence_of(1, 2);
  for (Presence* p : {&zero, &one}) p->come();
  tell(one, zero);
  EXPECT_EQ(zero.settle(Outcome::made), Outcome::made);
  tell(zero, one);
  EXPECT_EQ(one.outcome(), Outcome::made);
  EXPECT_EQ(one.missing(), -1);
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
