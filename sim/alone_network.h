// Transfers that never meet: each goes as fast as the narrowest thing on its way lets one go. No run on a network that
// is shared is over sooner.
#pragma once

#include "sim/instant_queue.h"
#include "sim/network.h"

namespace trellis::sim {

class AloneNetwork : public Network {
 public:
  explicit AloneNetwork(std::vector<Rate> capacities);

  void start(std::span<const Use>, Work, std::uint64_t tag) override;
  void settle() override {}
  Time next() const override { return ends_.next(); }
  void advance(Time to, std::vector<std::uint64_t>& ended) override;

 private:
  std::vector<Rate> capacities_;
  InstantQueue<std::uint64_t> ends_;
  std::vector<std::uint64_t> row_;
  Time now_ = 0;
};

}  // namespace trellis::sim
