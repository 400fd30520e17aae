// The packets of a data path, over one wire at a time: buffers for those that arrive and those that are sent, and
// retransmission of those that failed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ccl/transports/libfabric/data/packet.h"
#include "ccl/transports/libfabric/data/packet_pool.h"

namespace trellis::ccl::libfabric {

class PacketChannel {
 public:
  PacketChannel(std::size_t bytes_of_one, std::size_t most_sent) : packet_bytes_(bytes_of_one), most_sent_(most_sent) {}
  void open(Wire&, int rail);  // also in place of a wire that was closed; what was under way there is forgotten
  void post_receives();        // as many as packets may arrive at once; buffers that lanes keep are replaced
  void received() { --posted_; }
  // False: it cannot be sent now. `may_inject`: nobody needs to know whether the packet has gone.
  bool send(fi_addr_t, const PacketHeader&, std::span<const std::byte> payload, bool may_inject);
  void sent(PacketBuffer*, bool over);  // over: it has gone, or nobody waits for it; otherwise it is sent again, later
  void repeat();                        // sends again those that failed, after a pause
  void give(PacketBuffer*);             // after use
  std::size_t memory_bytes() const;

 private:
  const std::size_t packet_bytes_, most_sent_;
  Wire* wire_ = nullptr;
  int rail_ = 0;
  std::unique_ptr<PacketPool> incoming_, outgoing_;
  // The buffers of a wire that was closed. A lane may still keep messages that came over it.
  struct Former {
    std::unique_ptr<PacketPool> pool;
    std::size_t kept = 0;
  };
  std::vector<Former> former_;
  std::size_t posted_ = 0, wanted_posted_ = 4;  // receives
  std::vector<PacketBuffer*> to_repeat_;
};

}  // namespace trellis::ccl::libfabric
