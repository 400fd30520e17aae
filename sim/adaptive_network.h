// Flows that share by max-min fairness, exactly; where so many share so much that working it out anew after each change
// has taken long, to one part in 8,192 from then on.
#pragma once

#include <memory>

#include "sim/network.h"

namespace trellis::sim {

class FlowNetwork;

class AdaptiveNetwork : public Network {
 public:
  // `patience`: how many rates are worked out before it asks whether these are far more than what has changed.
  AdaptiveNetwork(std::vector<Rate> capacities, std::int64_t patience);
  ~AdaptiveNetwork() override;

  void start(std::span<const Use> uses, Work work, std::uint64_t tag) override { network_->start(uses, work, tag); }
  void settle() override;
  Time next() const override { return network_->next(); }
  void advance(Time to, std::vector<std::uint64_t>& ended) override;
  double carried(std::uint32_t resource) const override { return carried_[resource] + network_->carried(resource); }

  bool exact() const override { return exact_ != nullptr; }

 private:
  const std::vector<Rate> capacities_;
  const std::int64_t patience_;
  std::unique_ptr<Network> network_;
  FlowNetwork* exact_;  // null: it is none any more
  Time now_ = 0;
};

}  // namespace trellis::sim
