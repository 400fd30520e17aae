// A packet-level model with cut-through forwarding, round-robin service and a window of packets for each transfer: the
// reference that FlowNetwork is tested against. It costs a hundred times more.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "sim/cluster/network/network.h"
#include "sim/hardware/time/batched_event_queue.h"

namespace trellis::sim {

class PacketNetwork : public Network {
 public:
  PacketNetwork(std::vector<Rate> capacities, double packet_bytes);

  void start(std::span<const ResourceUse>, Work, std::uint64_t tag) override;
  void settle() override;
  Time next() const override { return std::min(served_.next(), heads_.next()); }
  void advance(Time to, std::vector<std::uint64_t>& ended) override;

 private:
  struct Hop {
    ResourceUse use;
    std::uint32_t waiting = 0;             // packets
    std::uint32_t served = 0, passed = 0;  // packets whose service has begun, and has ended
    bool listed = false;                   // it is in the resource's queue
  };
  struct Flow {
    std::vector<Hop> hops;
    Work last = 0;                         // size of the last packet
    std::uint32_t packets = 0, begun = 0;  // begun: handed to the first resource
    std::uint64_t tag = 0;
  };
  struct Turn {
    std::uint32_t flow = 0, hop = 0;
  };
  struct Resource {
    Rate capacity = 0;
    bool busy = false;
    Turn current;
    std::deque<Turn> turns;
  };

  void feed(std::uint32_t flow);
  void arrive(Turn);
  void serve(std::uint32_t resource);
  bool pass(Turn);  // true: the flow has ended
  Time service(const Hop&, Work) const;

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_, fresh_;
  BatchedEventQueue<std::uint32_t> served_;  // resources that finish a packet
  BatchedEventQueue<Turn> heads_;            // heads of packets, on the way to the next resource
  std::vector<std::uint32_t> row_;
  std::vector<Turn> turns_;
  Work packet_ = 0;
  Time now_ = 0;
};

}  // namespace trellis::sim
