// Swing (De Sensi et al., NSDI 2024): butterflies whose partners on a torus are closer than in recursive halving, using
// all links at once. For powers of two, an all-reduce step is one message; otherwise each block is one.
#include <fmt/format.h>

#include "schedule/algorithms/patterns/swing_butterfly.h"
#include "schedule/algorithms/patterns/torus_lanes.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// One step, with one message per block. Each rank sends partial sums, which its partner adds to its own, or, if `back`,
// finished blocks.
void hand_over(Builder& b, const SwingButterfly& butterfly, const SwingBlocks& handover, const TorusLane& lane,
               int step, bool back) {
  const auto partner = [&](Rank r) { return butterfly.partner(r, step); };
  for (std::int32_t segment = 0; segment < lane.segments; ++segment)
    for (std::int64_t k = 0; k < handover.blocks(step); ++k)
      for (Rank r : b.senders(partner)) {
        const std::int64_t block = handover.block(back ? partner(r) : r, step, k);
        const std::int64_t chunk = lane.chunk(block, segment);
        if (back)
          b.copy(data(r, chunk), data(partner(r), chunk));
        else
          b.reduce(data(r, chunk), data(partner(r), chunk));
      }
}

void build_lane(const Request& request, Builder& b, const TorusLane& lane) {
  const SwingButterfly butterfly(linked(request.dims), lane.first_axis, lane.backward);
  if (!lane.blocks && butterfly.halves()) {
    const std::int64_t first = lane.chunk(0, 0);
    scatter_sums(b, butterfly, first, lane.segments);
    return gather_positions(b, butterfly, first, lane.segments);
  }
  const SwingBlocks handover(butterfly);
  if (reduces(request.operation.collective))
    for (int step = 0; step < butterfly.steps(); ++step) hand_over(b, butterfly, handover, lane, step, false);
  if (request.operation.collective != reduce_scatter && request.operation.collective != reduce_scatter_v)
    for (int step = butterfly.steps() - 1; step >= 0; --step) hand_over(b, butterfly, handover, lane, step, true);
}

std::string refuses(const Request& r) {
  for (Rank size : r.dims)
    if (size > 1 && size % 2 != 0) return fmt::format("a dimension of {}: expected even ones", size);
  return refuses_torus_lanes(r);
}

void build(const Request& request, Builder& b) {
  for (const TorusLane& lane : torus_lanes(request)) {
    Builder on = b.on_channel(lane.index);
    build_lane(request, on, lane);
  }
}

Symmetry symmetry(const Request& r) { return even_shifts(r.dims); }

// Partners swap all they have. Far partners come first, so that all ranks that have met hold a sum with the same bits.
void build_whole(const Request& request, Builder& b) {
  const std::vector<Rank> dims = linked(request.dims);
  for (std::int32_t lane = 0; lane < request.channels; ++lane) {
    Builder on = b.on_channel(lane);
    const SwingButterfly butterfly(dims, lane / 2 % dims.size(), lane % 2 == 1);
    for (int step = butterfly.steps() - 1; step >= 0; --step)
      for (std::int32_t s = 0; s < request.segments; ++s) {
        const std::int64_t chunk = std::int64_t{lane} * request.segments + s;
        const std::int64_t arrived = chunk + step % 2 * request.shares();
        const auto partner = [&](Rank r) { return butterfly.partner(r, step); };
        for (Rank r : on.senders(partner)) on.copy(data(r, chunk), tmp(partner(r), arrived, 1, chunk));
        for (Rank r : on.senders()) on.reduce(tmp(r, arrived, 1, chunk), data(r, chunk));
      }
  }
}

const RegisteredAlgorithm registered{{
    .name = "swing",
    .summary = "a butterfly on tori with near partners, on all dimensions in both directions at once",
    .constraint = "even dimensions, powers of two best",
    .serves = {all_reduce, reduce_scatter, all_gather, reduce_scatter_v, all_gather_v},
    .refuses = refuses,
    .pieces = torus_pieces,
    .build = build,
    .symmetry = symmetry,
    .usual_shape = UsualShape::machine,
}};

const RegisteredAlgorithm registered_whole{{
    .name = "swing_whole",
    .summary = "swing for small buffers: partners swap all they have; fewest steps, most traffic",
    .constraint = "dimensions that are powers of two",
    .serves = {all_reduce},
    .refuses = [](const Request& r) { return refuses_other_sides(r.dims); },
    .pieces = [](const Request& r) { return r.shares(); },
    .build = build_whole,
    .symmetry = symmetry,
}};

}  // namespace
}  // namespace trellis::schedule
