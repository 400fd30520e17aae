// The DMA engines of a core and the rings that feed them. A ring starts its instructions in sequence; an engine serves
// packets of the rings that have work in round-robin order.
#pragma once

#include <deque>
#include <vector>

#include "sim/core/run/instruction_cost.h"
#include "sim/hardware/time/event_queue.h"

namespace trellis::sim::core {

enum class CoreEventKind : std::uint8_t { issue, finish, ring, share, packet };

struct CoreEvent {
  CoreEventKind what = CoreEventKind::issue;
  std::uint16_t unit = 0;    // stream, ring or DMA engine
  std::uint32_t number = 0;  // instruction, transfer, or the version of an engine's packet
};

// A DMA instruction in a ring.
struct RingTransfer {
  std::uint32_t instruction = 0;
  std::uint32_t stream = 0;
  std::int64_t span = -1;       // of its trigger
  Time asked = 0;               // the end of its trigger
  Time start = 0;               // of its first engine
  Time end = 0;                 // of its last engine
  std::int32_t registers = -1;  // a copy of the stream's registers at its trigger, if it needs them; -1: none
  int missing = 0;              // engines that are not done
};

class DmaRings {
 public:
  DmaRings(const ChipSpec&, int cores, EventQueue<CoreEvent>&);

  int rings() const { return static_cast<int>(rings_.size()); }
  // work must stay at its address until the transfer is done.
  void ask(int ring, std::uint32_t instruction, std::uint32_t stream, std::int64_t span, std::int32_t registers,
           const DmaWork& work, Time asked);

  void ring_event(int ring);                             // its next transfer begins
  void share_event(int engine, std::uint32_t transfer);  // an engine's part of it begins
  // A packet has ended. Returns the transfers that are done now, in the order of their ring; valid until the next call.
  const std::vector<RingTransfer>& packet_event(int engine, std::uint32_t version);

  const std::vector<Time>& busy() const { return busy_; }  // of each engine
  Time any_busy() const { return any_busy_; }              // with at least one engine busy

 private:
  struct Share {
    std::uint32_t transfer;
    int ring;
    Time left;    // to do
    Time packet;  // of one packet
  };
  struct DmaEngineQueue {
    std::deque<Share> shares;  // the first is served
    Time since = 0;
    Time until = 0;
    std::uint32_t version = 0;
  };
  struct Ring {
    std::deque<std::uint32_t> waiting;  // transfers that have not begun
    std::deque<std::uint32_t> flying;   // begun and not yet returned
    bool starting = false;
    Time last = -1;  // when the transfer before started; without prefetch, when it ended
    int busy = 0;    // transfers that move
  };
  struct Entry {
    RingTransfer transfer;
    const DmaWork* work = nullptr;
    int ring = 0;
    bool done = false;
  };

  void plan(int ring);
  void serve(int engine, Time now);
  void settle(int ring);

  const ChipSpec& chip_;
  EventQueue<CoreEvent>& queue_;
  std::vector<Ring> rings_;
  std::vector<DmaEngineQueue> servers_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> free_;
  std::vector<RingTransfer> done_;
  std::vector<Time> busy_;
  int at_work_ = 0;  // how many engines are busy
  Time any_since_ = 0, any_busy_ = 0;
};

}  // namespace trellis::sim::core
