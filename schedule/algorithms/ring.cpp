// Every rank talks to its two neighbours only, in rank order. Odd channels run the other way round.
#include "schedule/ring_lane.h"

namespace trellis::schedule {
namespace {

using enum Collective;

std::int32_t pieces(const Request& r) { return r.channels * r.segments * (r.collective == all_reduce ? r.ranks() : 1); }

void build(const Request& request, Builder& b) {
  const auto itself = [](Rank r) { return r; };
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    Builder on = b.on_channel(channel);
    const RingLane lane{.ranks = request.ranks(),
                        .rank_at = itself,
                        .position_of = itself,
                        .first = channel * request.segments,
                        .segments = request.segments,
                        .pieces = request.channels * request.segments};
    build_ring(request, on, channel % 2 == 1 ? lane.reversed() : lane);
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
