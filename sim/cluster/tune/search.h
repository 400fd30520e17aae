// Searches for better configs than the plain algorithms: compositions with any algorithm at each level of a hierarchy,
// over every way to merge or separate the machine's dimensions; the dimensions in other orders; two configs at once,
// each with a share of the data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/cluster/tune/sweep.h"

namespace trellis::sim {

// All shapes of the same number of ranks that keep the order of `dims`: each dimension is cut into its prime factors,
// and neighbouring factors are merged in every way.
std::vector<std::vector<Rank>> shapes_of(const std::vector<Rank>& dims);

// Every composition of algorithms over every such shape of at least two levels. If several algorithms give the same
// schedule at a level, one is used; wrong ones are left out. Throws CompilationStopped if the pricer's settings say
// stop, as the next two do.
std::vector<AlgorithmConfig> compositions(const Pricer&, const std::vector<std::string>& algorithms,
                                          std::size_t most_levels);

// Every algorithm with the group's dimensions in each order except their own.
std::vector<AlgorithmConfig> orders(const Pricer&, const std::vector<std::string>& algorithms);

// Splits the data between two configs that run at once. Takes the first `most_configs` configs; the faster one gets the
// larger share.
std::vector<AlgorithmConfig> splits(const Pricer&, const std::vector<ConfigCost>& fastest_first,
                                    std::size_t most_configs);

struct SearchOptions {
  std::vector<std::string> algorithms = {};  // for the levels; empty: all
  std::size_t most_levels = 3;
  std::size_t finalists =
      6;  // of each kind of config, how many are tried with other channels and segments, and in pairs
  std::vector<std::int32_t> channels = {1, 2, 4}, segments = {1, 4};
  std::size_t shown = 5;  // how many of the fastest are wanted; never fewer than the finalists
  // Budget of simulated moves for each kind of config. The most promising configs are tried first, until it is used up.
  std::int64_t most_moves = 2'000'000;
  static constexpr std::int64_t configs_at_least =
      40;  // a config that would take more than 1/40 of the budget is left out
};

struct SearchResult {
  std::vector<ConfigCost> fixed;  // the plain algorithms with their channels and segments, and what choose() chooses
                                  // (as `trellis sim` does) within its usual tolerance; the fastest first
  std::vector<ConfigCost> found;  // compositions, other orders and splits; the fastest first
  std::size_t tried = 0;          // compositions, other orders and splits that were tried
  std::size_t untried = 0;        // left out as the least promising
  std::vector<RejectedConfig>
      left_out;  // of the plain algorithms, those that are wrong or too large; no level uses a wrong one
};

// When stopped it returns what it has found, within a second.
SearchResult search(const Machine&, const RankGroup&, const Pricer::Settings&, double bytes, const SearchOptions&,
                    const SweepControl&);

}  // namespace trellis::sim
