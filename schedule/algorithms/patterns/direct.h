// One-step exchanges between all ranks, or with a root, and the sum of what arrived. One-step and two-step direct
// algorithms are built from these.
#pragma once
#include <vector>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {

// The part of a block that one message carries.
struct BlockShare {
  std::int64_t first = 0;   // first chunk within the block
  std::int64_t pieces = 1;  // chunks per block

  std::int64_t chunk(Rank block) const { return block * pieces + first; }
  // Several blocks form one run if this share is the whole block.
  ChunkPlace at(Rank holder, Rank block, Rank blocks = 1) const { return data(holder, chunk(block), blocks); }
  // Scratch for the same data, in slot `slot` (counted in blocks).
  ChunkPlace arrival(Rank holder, Rank block, std::int64_t slot, Rank blocks = 1) const {
    return tmp(holder, slot * pieces + first, blocks, chunk(block));
  }
};

// Calls step(builder, share) for each share, with a builder on its channel.
template <class Step>
void each_share(const Request& request, const Builder& b, Step step) {
  for (std::int32_t i = 0; i < request.shares(); ++i) {
    Builder on = b.on_channel(i / request.segments);
    step(on, BlockShare{.first = i, .pieces = request.shares()});
  }
}

// Distances between ranks of a torus, each named by the rank at that distance from rank 0. So every rank meets the
// others in the same order.
class TorusDistances {
 public:
  explicit TorusDistances(const std::vector<Rank>& dims) {
    for (const Rank size : dims) torus_.axes.push_back({SymmetryAxis::Kind::rotate, size});
  }

  const Symmetry& torus() const { return torus_; }
  Rank ahead(Rank r, Rank distance) const { return torus_.image(0, distance, r); }
  Rank behind(Rank r, Rank distance) const { return torus_.image(distance, 0, r); }
  Rank between(Rank from, Rank to) const { return behind(to, from); }

 private:
  Symmetry torus_;
};

// Calls move(rank, peer, distance) for every ordered pair of ranks. In one round all distances are equal, so each rank
// sends to one peer and receives from one, and no rank is the first target of all.
template <class Move>
void each_to_each(Builder& b, const TorusDistances& distances, Move move) {
  for (Rank distance = 1; distance < b.ranks(); ++distance)
    for (Rank r : b.senders([&](Rank me) { return distances.behind(me, distance); }))
      move(r, distances.ahead(r, distance), distance);
}

// Calls move(rank) for every rank except the root, as the receiver of a message from the root.
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

// Calls move(rank, distance) for every rank except the root, as the sender of a message to the root.
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

// Adds the holder's own contribution and all received ones in rank order, whoever the holder is.
inline void add_in_rank_order(Builder& b, const TorusDistances& distances, const BlockShare& share, Rank holder,
                              Rank block) {
  const Rank n = b.ranks();
  std::vector<ChunkPlace> sources;
  for (Rank r = 0; r < n; ++r)
    sources.push_back(r == holder ? share.at(r, block) : share.arrival(holder, block, distances.between(r, holder)));
  b.reduce_all(sources, share.at(holder, block));
}

// Reduce-scatter: every rank sends block b to rank b, which adds them up.
inline void sum_at_owners(Builder& b, const TorusDistances& distances, const BlockShare& share) {
  each_to_each(b, distances, [&](Rank r, Rank owner, Rank distance) {
    b.copy(share.at(r, owner), share.arrival(owner, owner, distance));
  });
  for (Rank r : b.senders()) add_in_rank_order(b, distances, share, r, r);
}

// All-gather: rank b sends block b to every rank.
inline void send_to_all(Builder& b, const TorusDistances& distances, const BlockShare& share) {
  each_to_each(b, distances, [&](Rank r, Rank peer, Rank) { b.copy(share.at(r, r), share.at(peer, r)); });
}

}  // namespace trellis::schedule
