// Finds the message size, to the byte, at which one algorithm config becomes cheaper than another. The samples
// of a sweep bracket each crossover; prices between them locate it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/tune/best_config_range.h"
#include "sim/cluster/tune/sweep.h"

namespace trellis::sim {

class CrossoverFinder {
 public:
  // The sweep must have priced all its points. Third configs, which win between two samples, are searched for on the
  // control's threads. If the control says stop, borders that are not yet found stay at samples.
  CrossoverFinder(const Machine&, const SweepSpec&, const std::vector<ConfigCost>& samples, SweepControl);

  // Like regions_of, but locates each border to the byte: a range begins at the least size at which its config is
  // cheaper than that of the range before, and `time` is its price there. A config that wins only between two samples,
  // by enough to be worth a change, gets a range too.
  std::vector<BestConfigRange> regions(bool family);
  // The prices at the borders found last: of the config that loses and of the config that wins.
  const std::vector<ConfigCost>& priced() const { return priced_; }

 private:
  // One config, or all configs of one family, of which the cheapest counts.
  using Contender = std::string;
  struct Side {
    double bytes = 0;
    Contender who;
  };

  Contender contender(const AlgorithmConfig&) const;
  ConfigCost price(const Contender&, double bytes);
  ConfigCost fastest(double bytes,
                     Time limit);  // over all configs; its time is `forever` when none is within the limit
  double border(const Side& before, const Side& after);
  void change(const Side& before, const Side& after, int depth);
  void look_between(const Side& low, const Side& high);
  void take(const Contender&, double bytes);
  bool stopped() const { return control_.stopped && control_.stopped(); }

  PricingSession asked_;
  SweepSpec sweep_;
  std::vector<ConfigCost> samples_;
  SweepControl control_;
  bool family_ = false;
  std::map<Contender, std::vector<AlgorithmConfig>> configs_;
  std::map<std::pair<AlgorithmConfig, double>, Time> known_;
  std::vector<BestConfigRange> regions_;
  std::vector<ConfigCost> priced_;
};

}  // namespace trellis::sim
