// Chooses the fastest way of doing a collective. Lower bounds rule most ways out, so these are never priced in full.
#pragma once

#include <optional>
#include <vector>

#include "sim/choose/usual_configs.h"

namespace trellis::sim {

struct ChoiceLimits {
  std::size_t algorithms = 1;  // report the best ways of this many algorithms; those after the first are for comparison
  double within = 0;           // tolerance, as a part of the time: skip a way that could be faster by less than this
  std::int64_t most_moves = 20'000'000;  // budget of simulated moves for one way
};

struct Choice {
  std::vector<Cost> others;  // the most promising way of each other algorithm, with a lower bound on its time
  std::vector<Cost> best;    // the fastest way, then the best of each next algorithm
  Price price;               // of the fastest way
  std::size_t priced = 0;    // ways that were priced in full
  std::vector<AlgorithmConfig> untried;  // not priced, as they have too many moves; nothing is known of them
};

// Default tolerance of the CLI and of workloads. Where many ways reach the limit of one resource, ordering them exactly
// is not worth seconds.
inline constexpr double usual_within = 0.005;

// The first of `best` is the fastest, as if all ways had been priced; among equals the first given. With `within` it
// takes at most that much longer.
Choice choose(Pricer&, const std::vector<AlgorithmConfig>&, double bytes, const ChoiceLimits& = {});
std::optional<Cost> fastest(Pricer&, const std::vector<AlgorithmConfig>&,
                            double bytes);  // none: no way can do the collective

}  // namespace trellis::sim
