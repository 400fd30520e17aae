// One ring through all ranks of a host, then of the next host. Each pair of channels (one per direction) crosses
// between hosts at its own local ranks, so that the hosts' network interfaces share the load. The innermost dimension
// is the host.
#include "schedule/algorithms/patterns/ring_lane.h"

namespace trellis::schedule {
namespace {

using enum Collective;

Rank local_ranks(const Request& r) { return r.dims.front(); }

// Local rank where the channel enters each host (or leaves it, in reverse). The pairs are spread over the host.
Rank entry(const Request& r, std::int32_t channel) {
  const std::int64_t pairs = (r.channels + 1) / 2;
  return static_cast<Rank>(channel / 2 * std::int64_t{local_ranks(r)} / pairs);
}

void build(const Request& request, Builder& b) {
  const Rank q = local_ranks(request);
  build_rings(request, b, [&](std::int32_t channel) {
    const Rank shift = entry(request, channel);
    return RingLane{.rank_at = [=](Rank position) { return position / q * q + (position % q + shift) % q; },
                    .position_of = [=](Rank r) { return r / q * q + (r % q - shift + q) % q; }};
  });
}

Symmetry symmetry(const Request& r) {
  const Rank q = local_ranks(r), hosts = r.ranks() / q;
  const SymmetryAxis::Kind over_hosts =
      rooted(r.operation.collective) ? SymmetryAxis::Kind::distinct : SymmetryAxis::Kind::rotate;
  if (hosts == 1) return {{{over_hosts, q}}};  // all channels run on the same ring, which they enter at different ranks
  return {{{SymmetryAxis::Kind::distinct, q}, {over_hosts, hosts}}};
}

const RegisteredAlgorithm registered{{
    .name = "flat_ring",
    .summary = "one ring, host after host; channels cross between hosts at different local ranks",
    .constraint = "any rank count; the innermost dimension is a host",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_gather_v, reduce_scatter_v},
    .pieces = ring_pieces,
    .build = build,
    .symmetry = symmetry,
    .usual_shape = UsualShape::hosts,
    .renown = 1,
}};

}  // namespace
}  // namespace trellis::schedule
