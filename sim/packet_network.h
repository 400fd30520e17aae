// Transfers packet by packet: each is stored before it is sent on, and a resource serves the transfers that wait for it
// by turns. A transfer has only so many packets on their way. Slow, and what the flows of FlowNetwork are held against.
#pragma once

#include <deque>
#include <vector>

#include "sim/instant_queue.h"
#include "sim/network.h"

namespace trellis::sim {

class PacketNetwork : public Network {
 public:
  PacketNetwork(std::vector<Rate> capacities, double packet_bytes);

  void start(std::span<const Use>, Work, std::uint64_t tag) override;
  void settle() override;
  Time next() const override { return served_.next(); }
  void advance(Time to, std::vector<std::uint64_t>& ended) override;

 private:
  struct Hop {
    Use use;
    std::uint32_t waiting = 0;  // packets, but for the one that is served
    std::uint32_t passed = 0;
    bool listed = false;  // it has a turn
  };
  struct Flow {
    std::vector<Hop> hops;
    Work last = 0;                         // of the last packet
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

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_, fresh_;
  InstantQueue<std::uint32_t> served_;  // resources that are through with a packet
  std::vector<std::uint32_t> row_;
  Work packet_ = 0;
  Time now_ = 0;
};

}  // namespace trellis::sim
