// The grants that a sender was given and has not used up. A receiver grants only for the message that it
// receives, in few parts; no more are kept, so that forged grants take no memory.
#pragma once

#include <algorithm>
#include <vector>

#include "ccl/transports/libfabric/data/packet.h"

namespace trellis::ccl::libfabric {

struct ReceivedGrant {
  PacketHeader packet;
  Grant grant;
  std::uint32_t next = 0;  // piece
};

class ReceivedGrants : public std::vector<ReceivedGrant> {
 public:
  static constexpr std::size_t most = 4UL * window;  // four parts of each message that may be under way

  // A known grant may come again, for other rails: the newer one replaces it.
  void add(const PacketHeader& p, const Grant& g, bool passed) {
    const auto known = std::ranges::find_if(
        *this, [&](const ReceivedGrant& o) { return o.packet.number == p.number && o.grant.offset == g.offset; });
    if (known != end())
      known->grant = g;
    else if (g.piece != 0 && !passed && size() < most)
      push_back({p, g});
  }
  void end_of(std::uint32_t number) {
    std::erase_if(*this, [&](const ReceivedGrant& o) { return o.packet.number == number; });
  }
};

}  // namespace trellis::ccl::libfabric
