// Every rank talks to its two neighbours only. A block travels once round to be summed and once more to be known; a
// broadcast or a reduction is the same ring cut open at the root. Odd channels run the other way round.
#include "schedule/algorithm.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// One lane of the ring: the direction it turns in, and the chunks of a block that it carries.
struct Lane {
  Rank ranks = 1;
  bool backward = false;
  std::int32_t first = 0;     // chunk of a block
  std::int32_t segments = 1;  // chunks of it
  std::int32_t pieces = 1;    // chunks of a block in all lanes

  Rank ahead(Rank r, Rank by = 1) const { return (backward ? r - by % ranks + ranks : r + by) % ranks; }
  Rank behind(Rank r, Rank by = 1) const { return (backward ? r + by : r - by % ranks + ranks) % ranks; }
  std::int64_t chunk(Rank block, std::int32_t segment) const { return std::int64_t{block} * pieces + first + segment; }
};

// The sum of block b starts one ahead of rank b, goes all the way round, and ends on rank b.
void sum_round(Builder& b, const Lane& lane) {
  const auto previous = [&](Rank r) { return lane.behind(r); };
  for (Rank step = 1; step < lane.ranks; ++step)
    for (std::int32_t s = 0; s < lane.segments; ++s)
      for (Rank r : b.senders(previous)) {
        const std::int64_t c = lane.chunk(lane.behind(r, step), s);
        b.reduce(data(r, c), data(lane.ahead(r), c));
      }
}

// Block b starts on rank b and is passed on until its last neighbour has it.
void pass_round(Builder& b, const Lane& lane) {
  const auto previous = [&](Rank r) { return lane.behind(r); };
  for (Rank step = 0; step + 1 < lane.ranks; ++step)
    for (std::int32_t s = 0; s < lane.segments; ++s)
      for (Rank r : b.senders(previous)) {
        const std::int64_t c = lane.chunk(lane.behind(r, step), s);
        b.copy(data(r, c), data(lane.ahead(r), c));
      }
}

// A pipeline along the ring, from the root or towards it.
void chain(Builder& b, const Lane& lane, Rank root, bool towards_root) {
  const auto previous = [&](Rank r) { return lane.behind(r); };
  for (std::int32_t wave = 0; wave < lane.segments + lane.ranks - 2; ++wave)
    for (Rank r : b.senders(previous)) {
      const Rank next = lane.ahead(r);
      if (towards_root ? r == root : next == root) continue;
      const Rank place = lane.backward ? (root - r + lane.ranks) % lane.ranks : (r - root + lane.ranks) % lane.ranks;
      const std::int32_t s = wave - (towards_root ? place - 1 : place);
      if (s < 0 || s >= lane.segments) continue;
      const std::int64_t c = lane.first + s;
      if (towards_root)
        b.reduce(data(r, c), data(next, c));
      else
        b.copy(data(r, c), data(next, c));
    }
}

void build_lane(const Request& request, Builder& b, const Lane& lane) {
  switch (request.collective) {
    case broadcast:
      return chain(b, lane, request.root, false);
    case reduce:
      return chain(b, lane, request.root, true);
    case reduce_scatter:
    case reduce_scatter_v:
      return sum_round(b, lane);
    case all_gather:
    case all_gather_v:
      return pass_round(b, lane);
    default:
      sum_round(b, lane), pass_round(b, lane);
  }
}

std::int32_t pieces(const Request& r) { return r.channels * r.segments * (r.collective == all_reduce ? r.ranks() : 1); }

void build(const Request& request, Builder& b) {
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    Builder on = b.on_channel(channel);
    build_lane(request, on,
               {.ranks = request.ranks(),
                .backward = channel % 2 == 1,
                .first = channel * request.segments,
                .segments = request.segments,
                .pieces = request.channels * request.segments});
  }
}

Symmetry symmetry(const Request& r) {
  return {{{rooted(r.collective) ? Axis::Kind::distinct : Axis::Kind::rotate, r.ranks()}}};
}

const Registered registered{{
    .name = "ring",
    .summary = "neighbours only, in both directions; least traffic, most steps",
    .constraint = "any rank count",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_gather_v, reduce_scatter_v},
    .pieces = pieces,
    .build = build,
    .symmetry = symmetry,
}};

}  // namespace
}  // namespace trellis::schedule
