// Why a run took as long as it did: the moves that each waited for the one before, and in words whom they waited for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/price.h"

namespace trellis::sim {

// Of a traced run, by their numbers, the first first.
std::vector<std::int64_t> critical_moves(const Run&);
std::vector<Leg> critical_path(const Run&, const std::vector<std::int64_t>& moves, const Overheads&, Time end);

// Legs of one kind that go over one kind of link.
struct PathShare {
  Time time = 0;
  std::string words;
};
std::vector<PathShare> path_shares(const Price&, const Machine&);  // the largest first

std::string rank_name(const Machine&, Rank);   // "chip 12", "rank 49 (chip 12)"
std::string short_name(const Machine&, Rank);  // "chip 12", "rank 49"

}  // namespace trellis::sim
