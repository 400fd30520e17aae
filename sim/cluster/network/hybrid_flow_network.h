// Max-min fair flows that switch from the exact to the approximate model when exact rates become too costly. They are
// exact at first; once so many flows share so much that each change costs many new rates, they are right to one part in
// 8,192.
#pragma once

#include <memory>

#include "sim/cluster/network/network.h"

namespace trellis::sim {

class FlowNetwork;

class HybridFlowNetwork : public Network {
 public:
  // `patience`: how many rates are computed before it first checks whether these are far more than the flows that
  // started and ended.
  HybridFlowNetwork(std::vector<Rate> capacities, std::int64_t patience);
  ~HybridFlowNetwork() override;

  void start(std::span<const ResourceUse> uses, Work work, std::uint64_t tag) override {
    network_->start(uses, work, tag);
  }
  void settle() override;
  Time next() const override { return network_->next(); }
  void advance(Time to, std::vector<std::uint64_t>& ended) override;
  double carried(std::uint32_t resource) const override { return carried_[resource] + network_->carried(resource); }

  bool exact() const override { return exact_ != nullptr; }

 private:
  const std::vector<Rate> capacities_;
  const std::int64_t patience_;
  std::unique_ptr<Network> network_;
  FlowNetwork* exact_;  // null once it has switched
  Time now_ = 0;
};

}  // namespace trellis::sim
