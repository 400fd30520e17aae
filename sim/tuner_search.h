// Looks for better ways than the algorithms as they are: any of them at each level of a hierarchy, over every way to
// take the machine's dimensions together or apart; the dimensions in other orders; two ways at once, each with a share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/sweep.h"

namespace trellis::sim {

// The shapes of so many ranks that keep the order of `dims`: neighbours taken together, and each cut into its factors.
std::vector<std::vector<Rank>> shapes_of(const std::vector<Rank>& dims);

// Every composition of algorithms over every such shape of at least two levels. Of algorithms that come to the same
// schedule at a level, one.
std::vector<Way> compositions(const Pricer&, const std::vector<std::string>& algorithms, std::size_t most_levels);

// Every algorithm with the group's dimensions in each order but their own.
std::vector<Way> orders(const Pricer&, const std::vector<std::string>& algorithms);

// The data cut between two of these ways, which run at once: the first ones, with the faster one's share the larger.
std::vector<Way> splits(const Pricer&, const std::vector<Cost>& fastest_first, std::size_t most_ways);

struct Search {
  std::vector<std::string> algorithms = {};  // for the levels; empty: all
  std::size_t most_levels = 3;
  std::size_t finalists = 6;  // of each sort, that are tried with other lanes and parts, and beside each other
  std::vector<std::int32_t> lanes = {1, 2, 4}, parts = {1, 4};
  std::size_t shown = 5;  // of the fastest that are found, so many are wanted and no fewer than the finalists
  // That are gone through for each sort of way: the most promising first, as far as these last.
  std::int64_t most_moves = 2'000'000;
  static constexpr std::int64_t ways_at_least = 40;  // a way that would take more than its part of them is left out
};

struct SearchResult {
  std::vector<Cost> fixed;  // the algorithms as they are, with their lanes and parts: the fastest, these first
  std::vector<Cost> found;  // compositions, other orders and splits, likewise: the fastest
  std::size_t tried = 0;    // of these
  std::size_t untried = 0;  // the least promising
};

// What it has found when it is stopped.
SearchResult search(const Machine&, const Group&, const Pricer::Settings&, double bytes, const Search&,
                    const SweepControl&);

}  // namespace trellis::sim
