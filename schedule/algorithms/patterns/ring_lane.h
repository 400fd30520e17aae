// Rings through all ranks in any order, one per lane; a rank talks to its two neighbours only. A block goes around once
// to be summed and once more to be distributed. A broadcast or reduce is the ring cut open at the root.
#pragma once
#include <functional>

#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {

struct RingLane {
  Rank ranks = 1;
  std::function<Rank(Rank)> rank_at;      // by position
  std::function<Rank(Rank)> position_of;  // by rank
  std::int32_t first = 0;                 // first chunk within a block
  std::int32_t segments = 1;              // chunks per block in this lane
  std::int64_t pieces = 1;                // chunks per block in all lanes

  Rank ahead(Rank r, Rank by = 1) const { return rank_at((position_of(r) + by) % ranks); }
  Rank behind(Rank r, Rank by = 1) const { return rank_at((position_of(r) - by % ranks + ranks) % ranks); }
  std::int64_t chunk(Rank block, std::int32_t segment) const { return block * pieces + first + segment; }

  // The same ring in the opposite direction.
  RingLane reversed() const {
    RingLane back = *this;
    back.rank_at = [n = ranks, forward = rank_at](Rank position) { return forward((n - position) % n); };
    back.position_of = [n = ranks, forward = position_of](Rank r) { return (n - forward(r)) % n; };
    return back;
  }
};

// Reduce-scatter: the sum of block b starts one ahead of rank b, goes all the way around, and ends on rank b.
inline void sum_round(Builder& b, const RingLane& lane) {
  const auto previous = [&](Rank r) { return lane.behind(r); };
  for (Rank step = 1; step < lane.ranks; ++step)
    for (std::int32_t s = 0; s < lane.segments; ++s)
      for (Rank r : b.senders(previous)) {
        const std::int64_t c = lane.chunk(lane.behind(r, step), s);
        b.reduce(data(r, c), data(lane.ahead(r), c));
      }
}

// All-gather: block b starts on rank b and is passed on until its last neighbour has it.
inline void pass_round(Builder& b, const RingLane& lane) {
  const auto previous = [&](Rank r) { return lane.behind(r); };
  for (Rank step = 0; step + 1 < lane.ranks; ++step)
    for (std::int32_t s = 0; s < lane.segments; ++s)
      for (Rank r : b.senders(previous)) {
        const std::int64_t c = lane.chunk(lane.behind(r, step), s);
        b.copy(data(r, c), data(lane.ahead(r), c));
      }
}

// A pipeline along the ring, away from the root or towards it.
inline void chain(Builder& b, const RingLane& lane, Rank root, bool towards_root) {
  const auto previous = [&](Rank r) { return lane.behind(r); };
  const Rank start = lane.position_of(root);
  for (std::int32_t wave = 0; wave < lane.segments + lane.ranks - 2; ++wave)
    for (Rank r : b.senders(previous)) {
      const Rank next = lane.ahead(r);
      if (towards_root ? r == root : next == root) continue;
      const Rank place = (lane.position_of(r) - start + lane.ranks) % lane.ranks;
      const std::int32_t s = wave - (towards_root ? place - 1 : place);
      if (s < 0 || s >= lane.segments) continue;
      const std::int64_t c = lane.first + s;
      if (towards_root)
        b.reduce(data(r, c), data(next, c));
      else
        b.copy(data(r, c), data(next, c));
    }
}

// The lane's part of the collective: all_reduce, reduce_scatter, all_gather, their _v forms, broadcast or reduce.
inline void build_ring(const Request& request, Builder& b, const RingLane& lane) {
  switch (request.operation.collective) {
    case Collective::broadcast:
      return chain(b, lane, request.operation.root, false);
    case Collective::reduce:
      return chain(b, lane, request.operation.root, true);
    case Collective::reduce_scatter:
    case Collective::reduce_scatter_v:
      return sum_round(b, lane);
    case Collective::all_gather:
    case Collective::all_gather_v:
      return pass_round(b, lane);
    default:
      sum_round(b, lane), pass_round(b, lane);
  }
}

inline std::int64_t ring_pieces(const Request& r) {
  return r.shares() * (r.operation.collective == Collective::all_reduce ? r.ranks() : 1);
}

// One ring per channel, in the order that order_of(channel) returns as a RingLane; odd channels run in reverse.
template <class OrderOf>
void build_rings(const Request& request, Builder& b, OrderOf order_of) {
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    Builder on = b.on_channel(channel);
    RingLane lane = order_of(channel);
    lane.ranks = request.ranks();
    lane.first = channel * request.segments;
    lane.segments = request.segments;
    lane.pieces = request.shares();
    build_ring(request, on, channel % 2 == 1 ? lane.reversed() : lane);
  }
}

}  // namespace trellis::schedule
