#include "ccl/transports/libfabric/presence/gossip.h"

#include <algorithm>
#include <utility>

#include "ccl/transports/libfabric/presence/gossip_neighbours.h"

namespace trellis::ccl::libfabric {

Gossip::Gossip(Rank rank, Rank ranks) : rank_(rank) {
  if (!is_large(ranks)) return;
  neighbours_ = neighbours_of(rank, ranks);
  editions_.resize(static_cast<std::size_t>(ranks));
  all_.resize(neighbours_.size());
  for (Neighbour& n : all_) n.has.resize(editions_.size());
}

Gossip::Neighbour* Gossip::find(Rank r) {
  const auto at = std::ranges::find(neighbours_, r);
  return at == neighbours_.end() ? nullptr : &all_[static_cast<std::size_t>(at - neighbours_.begin())];
}

bool Gossip::came(Rank by, Rank of, std::uint32_t edition) {
  if (neighbours_.empty() || of == rank_) return false;
  const auto at = static_cast<std::size_t>(of);
  if (Neighbour* const n = find(by)) n->has[at] = std::max(n->has[at], edition);
  if (edition <= editions_[at]) return false;
  editions_[at] = edition;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (neighbours_[i] != by && neighbours_[i] != of) all_[i].queue.push_back(of);
  return true;
}

bool Gossip::owes(Rank to) const {
  const Neighbour* const n = find(to);
  return n != nullptr && !n->queue.empty();
}

std::optional<Rank> Gossip::next(Rank to) {
  Neighbour* const n = find(to);
  if (n == nullptr) return {};
  const auto has = [&](Rank of) {
    return n->has[static_cast<std::size_t>(of)] >= editions_[static_cast<std::size_t>(of)];
  };
  while (!n->queue.empty() && has(n->queue.front())) n->queue.pop_front();
  return n->queue.empty() ? std::nullopt : std::optional(n->queue.front());
}

void Gossip::goes(Rank to, int path) {
  Neighbour& n = *find(to);
  const Rank of = n.queue.front();
  n.queue.pop_front();
  n.has[static_cast<std::size_t>(of)] = editions_[static_cast<std::size_t>(of)];
  n.under_way[static_cast<std::size_t>(path)].push_back(of);
}

void Gossip::ended(Rank to, int path, bool well) {
  Neighbour* const n = find(to);
  if (n == nullptr) return;
  const std::vector<Rank> gone = std::exchange(n->under_way[static_cast<std::size_t>(path)], {});
  if (well) return;
  for (const Rank of : gone) {
    n->has[static_cast<std::size_t>(of)] = 0;
    n->queue.push_back(of);
  }
}

}  // namespace trellis::ccl::libfabric
