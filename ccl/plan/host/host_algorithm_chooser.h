// Chooses the algorithm of a host's collectives by the model of its machine.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "ccl/plan/host/host_model.h"

namespace trellis::ccl {

struct PredictedTime {
  schedule::AlgorithmConfig config;
  double readable_us = 0;                                     // where peers can read the call's buffers
  double hidden_us = 0;                                       // where they cannot
  double product() const { return readable_us * hidden_us; }  // sorts the configs: one order serves both cases
};

bool modelled(Collective);  // false for one whose ranks or blocks differ: uneven ones, permute and send_recv

class HostAlgorithmChooser {
 public:
  HostAlgorithmChooser(Rank ranks, TransportCapabilities, RankCores, const HostCosts& = sapphire_rapids);

  bool models(Collective) const;  // true if it covers the collective and the ranks' cores are known
  // The configs, fastest first. Calls of nearly the same size share one cached answer. It depends on nothing that may
  // differ between ranks, such as whether peers can read the buffers: both cases count alike.
  const std::vector<PredictedTime>& ranked(const Call&);
  const RankCores& places() const { return places_; }

 private:
  std::vector<PredictedTime> rank_all(const Call&) const;
  std::optional<PredictedTime> predicted(const schedule::AlgorithmConfig&, const Call&) const;
  std::vector<schedule::AlgorithmConfig> plain_configs(Collective) const;

  const Rank ranks_;
  const TransportCapabilities paths_;
  const RankCores places_;
  const HostCosts costs_;
  std::map<std::tuple<Collective, std::size_t, kernels::DType>, std::vector<PredictedTime>> known_;
};

}  // namespace trellis::ccl
