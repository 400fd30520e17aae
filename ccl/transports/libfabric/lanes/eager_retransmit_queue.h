// The small messages of a lane that were sent and not taken yet, kept so that they can be retransmitted over another
// rail. The receiver drops a duplicate by its number.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include "ccl/transports/libfabric/data/packet.h"

namespace trellis::ccl::libfabric {

class EagerRetransmitQueue {
 public:
  void keep(const PacketHeader& p, std::span<const std::byte> bytes) {
    if (!lags_) resent_ = messages_.size() + 1;
    messages_.push_back({p, {bytes.begin(), bytes.end()}});
  }
  void taken(std::uint32_t count) {  // `count`: how many messages the receiver has taken in all
    while (!messages_.empty() && static_cast<std::int32_t>(count - messages_.front().packet.number) > 0) {
      messages_.pop_front();
      resent_ -= resent_ == 0 ? 0 : 1;
    }
  }
  void begin_again() {  // all are to be retransmitted
    lags_ = true;
    resent_ = 0;
  }
  // Calls `send` with each message that is still to be retransmitted, and its bytes. False: `send` had no room for one.
  template <class Send>
  bool resend(Send&& send) {
    for (; lags_ && resent_ < messages_.size(); ++resent_)
      if (const Kept& k = messages_[resent_]; !send(k.packet, k.bytes)) return false;
    lags_ = false;
    return true;
  }
  void drop() { messages_.clear(); }

 private:
  struct Kept {
    PacketHeader packet;
    std::vector<std::byte> bytes;
  };
  std::deque<Kept> messages_;
  std::size_t resent_ = 0;
  bool lags_ = false;
};

}  // namespace trellis::ccl::libfabric
