// A network without contention: each transfer moves at the rate of its bottleneck, as if alone. No run on a shared
// network ends sooner, so this gives a lower bound.
#pragma once

#include "sim/cluster/network/network.h"
#include "sim/hardware/time/batched_event_queue.h"

namespace trellis::sim {

class UncontendedNetwork : public Network {
 public:
  explicit UncontendedNetwork(std::vector<Rate> capacities);

  void start(std::span<const ResourceUse>, Work, std::uint64_t tag) override;
  void settle() override {}
  Time next() const override { return ends_.next(); }
  void advance(Time to, std::vector<std::uint64_t>& ended) override;

 private:
  std::vector<Rate> capacities_;
  BatchedEventQueue<std::uint64_t> ends_;
  std::vector<std::uint64_t> row_;
  Time now_ = 0;
};

}  // namespace trellis::sim
