// Rings along every dimension of a torus, all busy at once. A lane sums along its first dimension, sums the rest along
// the next, and so on; then it distributes the result in the reverse order.
#include "schedule/algorithms/patterns/torus_lanes.h"

namespace trellis::schedule {
namespace {

using enum Collective;

// One dimension, in the order in which a lane uses them.
struct Stage {
  Rank size = 1;
  Rank stride = 1;         // between neighbouring ranks along it
  std::int64_t below = 1;  // number of ranks that agree in this and all earlier dimensions

  Rank coordinate(Rank r) const { return r / stride % size; }
  // `r` moved along this dimension by `by`, which is between -size and size.
  Rank moved(Rank r, Rank by) const {
    const Rank at = coordinate(r);
    return r + ((at + by + size) % size - at) * stride;
  }
};

struct Lane : TorusLane {
  std::vector<Stage> stages;

  Rank ahead(const Stage& s, Rank r, Rank by = 1) const { return s.moved(r, backward ? -by : by); }
  Rank behind(const Stage& s, Rank r, Rank by = 1) const { return s.moved(r, backward ? by : -by); }
};

std::vector<Stage> stages_from(const std::vector<Rank>& dims, std::size_t start) {
  std::vector<Stage> stages;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t d = (start + i) % dims.size();
    Stage stage{.size = dims[d]};
    for (std::size_t j = 0; j < d; ++j) stage.stride *= dims[j];
    stages.push_back(stage);
  }
  for (std::size_t i = stages.size() - 1; i > 0; --i) stages[i - 1].below = stages[i].below * stages[i].size;
  return stages;
}

// The chunks of `owner` and of all ranks that differ from it only in dimensions after the lane's i-th. If chunks may be
// numbered freely, the lane's earlier dimensions are the higher digits, so these chunks are one run. Otherwise this is
// the k-th chunk, counted from the owner's own place, so that the order is the same for all ranks.
ChunkPlace chunks(const Lane& lane, std::size_t i, Rank owner, std::int32_t segment, std::int64_t k) {
  const auto& stages = lane.stages;
  if (!lane.blocks) {
    std::int64_t place = 0;
    for (std::size_t j = 0; j <= i; ++j) place += stages[j].coordinate(owner) * stages[j].below;
    return data(0, lane.chunk(place, segment), stages[i].below);
  }
  Rank block = owner;
  for (std::size_t j = stages.size() - 1; j > i; k /= stages[j--].size)
    block = stages[j].moved(block, static_cast<Rank>(k % stages[j].size));
  return data(0, lane.chunk(block, segment));
}

// One ring along the lane's i-th dimension: the data of the rank `first_behind + step` behind moves one ahead.
template <class Move>
void go_round(Builder& b, const Lane& lane, std::size_t i, Rank first_behind, Move move) {
  const Stage& stage = lane.stages[i];
  const std::int64_t runs = lane.blocks ? stage.below : 1;
  const auto previous = [&](Rank r) { return lane.behind(stage, r); };
  for (Rank step = 0; step + 1 < stage.size; ++step)
    for (std::int32_t segment = 0; segment < lane.segments; ++segment)
      for (std::int64_t k = 0; k < runs; ++k)
        for (Rank r : b.senders(previous)) {
          ChunkPlace from = chunks(lane, i, lane.behind(stage, r, first_behind + step), segment, k), to = from;
          from.rank = r;
          to.rank = lane.ahead(stage, r);
          move(from, to);
        }
}

void build_lane(const Request& request, Builder& b, const Lane& lane) {
  const bool spreads =
      request.operation.collective != reduce_scatter && request.operation.collective != reduce_scatter_v;
  if (reduces(request.operation.collective))
    for (std::size_t i = 0; i < lane.stages.size(); ++i)
      go_round(b, lane, i, 1, [&](const ChunkPlace& from, const ChunkPlace& to) { b.reduce(from, to); });
  if (spreads)
    for (std::size_t i = lane.stages.size(); i-- > 0;)
      go_round(b, lane, i, 0, [&](const ChunkPlace& from, const ChunkPlace& to) { b.copy(from, to); });
}

void build(const Request& request, Builder& b) {
  const std::vector<Rank> dims = linked(request.dims);
  for (const TorusLane& lane : torus_lanes(request)) {
    Builder on = b.on_channel(lane.index);
    build_lane(request, on, {lane, stages_from(dims, lane.first_axis)});
  }
}

Symmetry symmetry(const Request& r) {
  Symmetry all;
  for (Rank size : r.dims) all.axes.push_back({SymmetryAxis::Kind::rotate, size});
  return all;
}

const RegisteredAlgorithm registered{{
    .name = "torus",
    .summary = "rings along all dimensions at once, in both directions; neighbours only, few steps",
    .constraint = "any rank count in any dimensions",
    .serves = {all_reduce, reduce_scatter, all_gather, reduce_scatter_v, all_gather_v},
    .refuses = refuses_torus_lanes,
    .pieces = torus_pieces,
    .build = build,
    .symmetry = symmetry,
    .usual_shape = UsualShape::machine,
}};

}  // namespace
}  // namespace trellis::schedule
