// The critical path of a run: the moves that each waited for the one before, and a description of it in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/cluster/price/price.h"

namespace trellis::sim {

// The numbers of the moves on a traced run's critical path, in order of time.
std::vector<std::int64_t> critical_moves(const SimulationRun&);
std::vector<CriticalPathLeg> critical_path(const SimulationRun&, const std::vector<std::int64_t>& moves, Time launch,
                                           Time end);

// The critical path's legs of one kind over one kind of link, added up.
struct CriticalPathShare {
  Time time = 0;
  std::string words;
};
std::vector<CriticalPathShare> path_shares(const Price&, const Machine&);  // the largest first

std::string rank_name(const Machine&, Rank);   // "chip 12", "rank 49 (chip 12)"
std::string short_name(const Machine&, Rank);  // "chip 12", "rank 49"

}  // namespace trellis::sim
