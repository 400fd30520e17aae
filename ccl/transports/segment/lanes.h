// Sender and receiver of one lane, over a segment's ring of cells.
#pragma once

#include <atomic>
#include <vector>

#include "ccl/transports/segment/shared_transport.h"

namespace trellis::ccl {

class SharedTransport::LaneSender : public Sender {
 public:
  LaneSender(SharedTransport&, Rank to, int lane);
  bool advance(Sending&) override;
  bool could_advance() const;  // whether a waiting sender or receiver could go on

 private:
  bool advance_now(Sending&);
  bool full() const;
  void look() const;
  void publish(LaneCell&, const Sending&, std::size_t bytes, PayloadLocation);

  const Segment segment_;
  PeerMemoryAccess& reach_;
  Ring& ring_;
  Doorbell& bell_;  // the receiver's
  std::byte* const slots_;
  const std::size_t slot_bytes_;
  const Rank to_;
  std::uint32_t sent_ = 0;
  mutable std::uint32_t taken_ = 0;  // last value read
  bool waiting_ = false;
  std::uint32_t wanted_ = 0;  // `taken` must reach this before a waiting sender goes on
};

class SharedTransport::LaneReceiver : public Receiver {
 public:
  LaneReceiver(SharedTransport&, Rank from, int lane);
  bool advance(Receiving&) override;
  bool could_advance() const { return waiting_ && arrived(); }
  std::uint32_t received() const { return got_; }  // number of cells received
  std::size_t memory_bytes() const { return sizeof *this + bounced_.load(std::memory_order_relaxed); }

 private:
  const LaneCell& next() const { return ring_.cells[got_ % ring_cells]; }
  bool comes(const Receiving&) const;  // the next cell has come; polls r.looks times
  bool arrived() const { return next().number.load(std::memory_order_acquire) == got_ + 1; }
  void consume(Receiving&, const LaneCell&);
  void check_there() const;
  void fetch(Receiving&, const PeerMemoryAccess::Place&, std::size_t bytes);

  PeerMemoryAccess& reach_;
  std::atomic<std::uint32_t>* const in_place_reads_;
  Ring& ring_;
  const RankArea& sender_;
  Doorbell& bell_;  // the sender's
  const std::byte* const slots_;
  const std::size_t slot_bytes_;
  const Rank from_;
  std::uint32_t got_ = 0;
  bool waiting_ = false;
  std::vector<std::byte> bounce_;         // for data that this rank cannot map and that must be processed
  std::atomic<std::size_t> bounced_ = 0;  // its bytes, which another thread may count
};

}  // namespace trellis::ccl
