// Chooses the algorithm for each collective of a workload, and caches its pattern for all like collectives.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/cluster/choose/algorithm_choice.h"
#include "sim/cluster/choose/schedule_cache.h"
#include "sim/cluster/workload/play.h"
#include "sim/cluster/workload/workload.h"

namespace trellis::sim {

struct ChosenAlgorithm {
  std::string words;                                // the config, "ring dims=16 channels=2"
  std::shared_ptr<const CompiledSchedule> pattern;  // null: stopped before there was one
  double chunk_bytes = 0;                           // an element's, if the pattern counts chunks in elements; else 0
  Time alone = 0;                                   // the price if nothing else is in flight
};

class AlgorithmChooser {
 public:
  // `shelves`: steps and schedules to share with other choosers, on any machine; null: none are shared.
  AlgorithmChooser(const Machine& machine, const PlayOptions& options, std::shared_ptr<ScheduleCaches> shelves = {})
      : machine_(machine),
        options_(options),
        shelves_(shelves ? std::move(shelves) : std::make_shared<ScheduleCaches>()),
        alike_(machine.alike()) {}

  // The named config; or the best by price, of all algorithms or of the named one. Groups that lie alike get the same.
  // `members`: never empty. Throws invalid_argument.
  const ChosenAlgorithm& choose(const WorkloadTask&, const std::vector<Rank>& members);

 private:
  using Key = std::tuple<schedule::Collective, double, Rank, Rank, std::string, const void*, std::vector<Rank>>;

  ChosenAlgorithm chosen(const WorkloadTask&, const std::vector<Rank>& members) const;
  void rename(std::vector<Rank>& place) const;

  const Machine& machine_;
  const PlayOptions& options_;
  std::shared_ptr<ScheduleCaches> shelves_;
  std::vector<RowSymmetry> alike_;
  std::map<Key, ChosenAlgorithm> chosen_;
};

}  // namespace trellis::sim
