// One ring through all ranks of a host, then through those of the next. Each two channels, one a direction, cross
// between hosts at local ranks of their own, so that the hosts' network interfaces share the work. The innermost
// dimension is the host.
#include "schedule/ring_lane.h"

namespace trellis::schedule {
namespace {

using enum Collective;

Rank local_ranks(const Request& r) { return r.dims.front(); }

// Where the channel enters each host, or leaves it when it runs the other way; the pairs are spread over the host.
Rank entry(const Request& r, std::int32_t channel) {
  const std::int64_t pairs = (r.channels + 1) / 2;
  return static_cast<Rank>(channel / 2 * std::int64_t{local_ranks(r)} / pairs);
}

std::int32_t pieces(const Request& r) { return r.channels * r.segments * (r.collective == all_reduce ? r.ranks() : 1); }

void build(const Request& request, Builder& b) {
  const Rank q = local_ranks(request);
  for (std::int32_t channel = 0; channel < request.channels; ++channel) {
    Builder on = b.on_channel(channel);
    const Rank shift = entry(request, channel);
    const RingLane lane{.ranks = request.ranks(),
                        .rank_at = [=](Rank position) { return position / q * q + (position % q + shift) % q; },
                        .position_of = [=](Rank r) { return r / q * q + (r % q - shift + q) % q; },
                        .first = channel * request.segments,
                        .segments = request.segments,
                        .pieces = request.channels * request.segments};
    build_ring(request, on, channel % 2 == 1 ? lane.reversed() : lane);
  }
}

Symmetry symmetry(const Request& r) {
  const Rank q = local_ranks(r), hosts = r.ranks() / q;
  const Axis::Kind over_hosts = rooted(r.collective) ? Axis::Kind::distinct : Axis::Kind::rotate;
  return {{{Axis::Kind::distinct, q}, {over_hosts, hosts}}};
}

const Registered registered{{
    .name = "flat_ring",
    .summary = "one ring, host after host; channels cross between hosts at different local ranks",
    .constraint = "any rank count; the innermost dimension is a host",
    .serves = {all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_gather_v, reduce_scatter_v},
    .pieces = pieces,
    .build = build,
    .symmetry = symmetry,
}};

}  // namespace
}  // namespace trellis::schedule
