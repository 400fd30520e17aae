// Presences without a fabric, whose messages tests carry.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <thread>

#include "ccl/transports/libfabric/presence/presence.h"

namespace trellis::ccl::libfabric {

// One on each host: "h0", "h1", ...
inline Presence presence_of(Rank rank, Rank ranks, std::chrono::milliseconds timeout = std::chrono::seconds(10),
                            ControlPaths paths = {}) {
  std::vector<std::size_t> places(static_cast<std::size_t>(ranks));
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::vector<Member> members;
  for (Rank r = 0; r < ranks; ++r)
    members.push_back({.host = "h" + std::to_string(r), .home = "b" + std::to_string(r)});
  return {7, rank, std::move(places), std::move(members), timeout, paths};
}

inline PublicState message(Presence& from, Rank to, int path = 0) {
  std::vector<std::byte> bytes;
  bytes.resize(from.write_for(to, path, 4096, bytes));
  PublicState state;
  EXPECT_TRUE(read_public(bytes, state));
  return state;
}

inline void tell(Presence& from, Presence& to, int path = 0) {
  EXPECT_TRUE(to.hear(message(from, to.rank(), path), path));
}

// As Control does it, over a wire on which all is lost: what is owed goes.
inline void send_in_vain(Presence& p) {
  for (const Rank r : p.take_owed()) {
    p.telling(r, p.path(r));
    p.told(r, p.path(r), 0);
  }
}

bool holds_in_time(auto&& holds) {
  for (const Deadline end = Clock::now() + std::chrono::seconds(20); Clock::now() < end;
       std::this_thread::sleep_for(std::chrono::milliseconds(1)))
    if (holds()) return true;
  return false;
}

}  // namespace trellis::ccl::libfabric
