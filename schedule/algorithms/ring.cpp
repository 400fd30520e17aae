// Ring in rank order: every rank talks to its two neighbours only. Odd channels run in the opposite direction.
#include "schedule/algorithms/patterns/ring_lane.h"

namespace trellis::schedule {
namespace {

using enum Collective;

void build(const Request& request, Builder& b) {
  const auto itself = [](Rank r) { return r; };
  build_rings(request, b, [&](std::int32_t) { return RingLane{.rank_at = itself, .position_of = itself}; });
}

const RegisteredAlgorithm registered{{
    .name = "ring",
    .summary = "neighbours only, in both directions; least traffic, most steps",
    .constraint = "any rank count",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_gather_v, reduce_scatter_v},
    .pieces = ring_pieces,
    .build = build,
    .dims = UseOfDims::none,
    .symmetry = rotated,
    .renown = 3,
}};

}  // namespace
}  // namespace trellis::schedule
