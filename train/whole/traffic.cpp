#include "train/whole/traffic.h"

#include <algorithm>

namespace trellis::train {

Group group_of(const RankStep& step, Axis axis, Rank rank) {
  if (axis == Axis::tied) {
    const Group stages = step.mesh.group(Axis::pipeline, rank);
    return {stages.front(), stages.back()};
  }
  if (axis != Axis::kv) return step.mesh.group(axis, rank);
  for (const Group& g : step.mesh.kv_groups(step.kv_copies))
    if (std::ranges::find(g, rank) != g.end()) return g;
  return {rank};
}

double bytes_sent(const RankStep& step, const Operation& o) {
  if (o.kind != Operation::Kind::exchange) return 0;
  const double bytes = step.program.bytes_exchanged(o);
  const auto members = static_cast<double>(group_of(step, o.exchange.axis, step.mesh.rank(step.place)).size());
  switch (o.exchange.kind) {
    case Exchange::Kind::send:
    case Exchange::Kind::shift:
      return bytes;
    case Exchange::Kind::receive:
      return 0;
    case Exchange::Kind::all_reduce:
      return 2 * bytes / members * (members - 1);
    default:  // of reduce_scatter and all_gather, these are the bytes of a shard
      return bytes * (members - 1);
  }
}

}  // namespace trellis::train
