// Which way of doing a collective is the fastest: found without pricing every way to its end, as what a way takes at
// least rules most of them out.
#pragma once

#include <optional>
#include <vector>

#include "sim/usual_ways.h"

namespace trellis::sim {

struct ChoiceLimits {
  std::size_t algorithms = 1;            // whose best ways are wanted: those behind the first are there to compare
  double within = 0;                     // of the time: a way that could be faster by less is not looked at
  std::int64_t most_moves = 20'000'000;  // that are gone through for one way
};

struct Choice {
  std::vector<Cost>
      others;  // of each algorithm that is not among these, the most promising way: it takes at least so long
  std::vector<Cost> best;    // the fastest way, and then those of the next algorithms
  Price price;               // of the fastest
  std::size_t priced = 0;    // ways that were priced to the end
  std::vector<Way> untried;  // more moves than can be gone through: nothing is known of them
};

// Of the CLI and of workloads: where many ways come to the limit of one resource, their order is not worth seconds.
inline constexpr double usual_within = 0.005;

// The first of `best` is what pricing all would give, the first of those that take equally long; with `within`, what
// takes at most so much longer.
Choice choose(Pricer&, const std::vector<Way>&, double bytes, const ChoiceLimits& = {});
std::optional<Cost> fastest(Pricer&, const std::vector<Way>&, double bytes);  // none: no way serves

}  // namespace trellis::sim
