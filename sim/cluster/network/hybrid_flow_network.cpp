#include "sim/cluster/network/hybrid_flow_network.h"

#include "sim/cluster/network/approximate_flow_network.h"
#include "sim/cluster/network/flow_network.h"

namespace trellis::sim {

HybridFlowNetwork::HybridFlowNetwork(std::vector<Rate> capacities, std::int64_t patience)
    : capacities_(std::move(capacities)), patience_(patience) {
  auto exact = std::make_unique<FlowNetwork>(capacities_);
  exact_ = exact.get();
  network_ = std::move(exact);
  carried_.assign(capacities_.size(), 0);
}

HybridFlowNetwork::~HybridFlowNetwork() = default;

void HybridFlowNetwork::settle() {
  network_->settle();
  if (!exact_ || !exact_->crowded(patience_)) return;
  auto approximate = std::make_unique<ApproximateFlowNetwork>(capacities_, now_);
  exact_->leave(
      [&](std::span<const ResourceUse> uses, Work left, std::uint64_t tag) { approximate->go_on(uses, left, tag); });
  for (std::uint32_t r = 0; r < carried_.size(); ++r) carried_[r] = exact_->carried(r);
  exact_ = nullptr;
  network_ = std::move(approximate);
  network_->settle();
}

void HybridFlowNetwork::advance(Time to, std::vector<std::uint64_t>& ended) {
  now_ = to;
  network_->advance(to, ended);
}

}  // namespace trellis::sim
