#include "sim/cluster/network/uncontended_network.h"

#include <algorithm>

namespace trellis::sim {

UncontendedNetwork::UncontendedNetwork(std::vector<Rate> capacities) : capacities_(std::move(capacities)) {
  carried_.resize(capacities_.size());
}

void UncontendedNetwork::start(std::span<const ResourceUse> uses, Work work, std::uint64_t tag) {
  Work longest = 0;
  const double bytes = static_cast<double>(work) / static_cast<double>(work_of_byte);
  for (const ResourceUse& use : uses) {
    carried_[use.resource] += bytes * use.weight / one_use;
    const Rate rate = std::max<Rate>(1, capacities_[use.resource]);
    longest = std::max(longest, work * use.weight / (static_cast<Work>(rate) * one_use));
  }
  ends_.push(later(now_, time_of(longest, 1)), tag);
}

void UncontendedNetwork::advance(Time to, std::vector<std::uint64_t>& ended) {
  now_ = to;
  while (ends_.next() == to) {
    ends_.pop(row_);
    ended.insert(ended.end(), row_.begin(), row_.end());
  }
}

}  // namespace trellis::sim
