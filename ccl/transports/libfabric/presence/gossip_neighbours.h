// The neighbours to which a rank relays news in a communicator of more than 32 ranks: those whose numbers are a power
// of two away. There are up to 2 log2(n), so that paths remain if some are lost.
#pragma once

#include <functional>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl::libfabric {

constexpr Rank most_told_directly = 32;  // ranks of a communicator in which everybody tells everybody
inline bool is_large(Rank ranks) { return ranks > most_told_directly; }

std::vector<Rank> neighbours_of(Rank, Rank ranks);

// The parent and the children of a rank in a binomial tree along some of these edges, with rank 0 on top: by this tree
// rank 0 learns that all have joined.
inline Rank above(Rank r, Rank ranks) { return is_large(ranks) ? r & (r - 1) : 0; }
std::vector<Rank> below(Rank, Rank ranks);

// For each rank: whether the news of the given one reach it over neighbours that are not gone.
std::vector<bool> reached_from(Rank, Rank ranks, const std::function<bool(Rank)>& gone);

}  // namespace trellis::ccl::libfabric
