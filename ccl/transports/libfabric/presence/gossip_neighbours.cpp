#include "ccl/transports/libfabric/presence/gossip_neighbours.h"

#include <algorithm>

namespace trellis::ccl::libfabric {

std::vector<Rank> neighbours_of(Rank r, Rank ranks) {
  std::vector<Rank> all;
  for (Rank step = 1; step < ranks; step *= 2)
    for (const Rank there : {(r + step) % ranks, (r - step + ranks) % ranks})
      if (there != r && std::ranges::find(all, there) == all.end()) all.push_back(there);
  return all;
}

std::vector<Rank> below(Rank r, Rank ranks) {
  std::vector<Rank> all;
  for (Rank step = 1; r + step < ranks && (r & step) == 0; step *= 2) all.push_back(r + step);
  return all;
}

std::vector<bool> reached_from(Rank from, Rank ranks, const std::function<bool(Rank)>& gone) {
  std::vector<bool> reached(static_cast<std::size_t>(ranks));
  std::vector<Rank> next = {from};
  reached[static_cast<std::size_t>(from)] = true;
  while (!next.empty()) {
    const Rank at = next.back();
    next.pop_back();
    for (const Rank r : neighbours_of(at, ranks)) {
      if (reached[static_cast<std::size_t>(r)] || gone(r)) continue;
      reached[static_cast<std::size_t>(r)] = true;
      next.push_back(r);
    }
  }
  return reached;
}

}  // namespace trellis::ccl::libfabric
