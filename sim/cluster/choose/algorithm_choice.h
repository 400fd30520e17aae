// Chooses the fastest algorithm config. Lower bounds rule most configs out, so these are never priced in full.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/choose/usual_configs.h"

namespace trellis::sim {

struct ChoiceLimits {
  std::size_t algorithms =
      1;              // report the best configs of this many algorithms; those after the first are for comparison
  double within = 0;  // tolerance, as a part of the time: skip a config that could be faster by less than this
  std::int64_t most_moves = 20'000'000;  // budget of simulated moves for one config
  // Budget of all configs together, in simulated moves and examined steps instead of seconds, so that every host
  // chooses alike. Once it is spent, the search stops as soon as one config has been priced. It may run to twice the
  // budget while some config could still take less than half of the best time. The other configs stay undecided.
  std::int64_t most_effort = 40'000'000;
  std::function<void(double)> decided = {};  // called now and then with the fraction of configs priced or ruled out
};

// A config that cannot be used, and why: a limit that its schedule exceeds, or the fault that a proof found in it.
struct RejectedConfig {
  AlgorithmConfig config;
  std::string why;
};

struct AlgorithmChoice {
  std::vector<ConfigCost> others;  // the most promising config of each other algorithm, with a lower bound on its time
  std::vector<ConfigCost> best;    // the fastest config, then the best of each next algorithm
  Price price;                     // of the fastest config
  std::size_t priced = 0;          // configs that were priced in full
  // Configs that were not priced, as they have too many moves or the effort was used up; one of them may be faster.
  std::vector<AlgorithmConfig> untried;
  std::vector<RejectedConfig> left_out;
};

// Default tolerance of the CLI and of workloads. Where many configs reach the limit of one resource, ordering them
// exactly is not worth seconds.
inline constexpr double usual_within = 0.005;

// The first of `best` is the fastest of all configs that are neither `untried` nor `left_out`, although most of them
// are only ruled out by lower bounds; of equally fast ones, the first given. With `within`, a config that was ruled out
// may be faster by up to that fraction. Where the pricer's settings say stop, it returns what is known by then.
AlgorithmChoice choose(Pricer&, const std::vector<AlgorithmConfig>&, double bytes, const ChoiceLimits& = {});
std::optional<ConfigCost> fastest(Pricer&, const std::vector<AlgorithmConfig>&,
                                  double bytes);  // none: no config was priced

}  // namespace trellis::sim
