// Exchanges in one step, each rank with every other or with a root, and the sum that a rank forms of what it got.
// Direct algorithms of one and of two steps are made of these.
#pragma once
#include "schedule/algorithm.h"

namespace trellis::schedule {

// What one message carries of a block.
struct Share {
  std::int64_t first = 0;   // chunk of a block
  std::int64_t pieces = 1;  // chunks of a block

  std::int64_t chunk(Rank block) const { return block * pieces + first; }
  // Several blocks are one run where this share is all of them.
  Place at(Rank holder, Rank block, Rank blocks = 1) const { return data(holder, chunk(block), blocks); }
  // Scratch for the same: its how-manieth block there.
  Place arrival(Rank holder, Rank block, std::int64_t slot, Rank blocks = 1) const {
    return tmp(holder, slot * pieces + first, blocks, chunk(block));
  }
};

// Calls step(builder, share) for each share, on its channel.
template <class Step>
void each_share(const Request& request, const Builder& b, Step step) {
  for (std::int32_t i = 0; i < request.shares(); ++i) {
    Builder on = b.on_channel(i / request.segments);
    step(on, Share{.first = i, .pieces = request.shares()});
  }
}

// Calls move(rank, peer, distance) for every two ranks. In one round all peers are equally far, so that each rank sends
// to one and receives from one, and none is everyone's first target.
template <class Move>
void each_to_each(Builder& b, Move move) {
  const Rank n = b.ranks();
  for (Rank distance = 1; distance < n; ++distance)
    for (Rank r : b.senders([&](Rank me) { return (me - distance + n) % n; })) move(r, (r + distance) % n, distance);
}

// Calls move(rank) for every rank but the root, to which the root sends.
template <class Move>
void from_root(Builder& b, Rank root, Move move) {
  const Rank n = b.ranks(), wanted = b.wanted_rank();
  for (Rank r : b.senders([&](Rank) { return root; })) {
    if (r != root) continue;
    if (wanted >= 0 && wanted != root)
      move(wanted);
    else
      for (Rank distance = 1; distance < n; ++distance) move((root + distance) % n);
  }
}

// Calls move(rank, distance) for every rank but the root, which send to the root.
template <class Move>
void to_root(Builder& b, Rank root, Move move) {
  const Rank n = b.ranks();
  const auto everyone_else = [&](Rank me) {
    std::vector<Rank> others;
    for (Rank distance = 1; me == root && distance < n; ++distance) others.push_back((root + distance) % n);
    return others;
  };
  for (Rank r : b.senders(everyone_else))
    if (r != root) move(r, (root - r + n) % n);
}

// The holder's own contribution to the block and all arrivals, added in rank order whoever the holder is.
inline void add_in_rank_order(Builder& b, const Share& share, Rank holder, Rank block) {
  const Rank n = b.ranks();
  std::vector<Place> sources;
  for (Rank r = 0; r < n; ++r)
    sources.push_back(r == holder ? share.at(r, block) : share.arrival(holder, block, (holder - r + n) % n));
  b.reduce_all(sources, share.at(holder, block));
}

// Everyone sends block b to rank b, which adds up: a reduce-scatter.
inline void sum_at_owners(Builder& b, const Share& share) {
  each_to_each(
      b, [&](Rank r, Rank owner, Rank distance) { b.copy(share.at(r, owner), share.arrival(owner, owner, distance)); });
  for (Rank r : b.senders()) add_in_rank_order(b, share, r, r);
}

// Rank b sends block b to everyone: an all-gather.
inline void send_to_all(Builder& b, const Share& share) {
  each_to_each(b, [&](Rank r, Rank peer, Rank) { b.copy(share.at(r, r), share.at(peer, r)); });
}

}  // namespace trellis::schedule
