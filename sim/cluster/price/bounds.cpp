#include <algorithm>

#include "schedule/collective_traits.h"
#include "sim/cluster/price/price.h"

namespace trellis::sim {
namespace {

using enum schedule::Collective;
using schedule::Task;

// What every schedule needs at least, as fractions of the larger buffer: what a rank must send, what must cross a cut
// one way, and what a rank must read and write in memory. `part`: the fraction of the ranks on the cut's smaller side.
struct Needs {
  double sent = 0, crossing = 0, touched = 0;
};

Needs needs(const Task& t, double part) {
  const double n = t.ranks;
  if (t.ranks < 2) return {};
  switch (t.operation.collective) {
    case all_reduce:
      return {2 * (n - 1) / n, 1, 2};
    case reduce_scatter:
      return {(n - 1) / n, 0.5, 1 + 1 / n};
    case reduce_scatter_v:  // the rank's own block may be empty
      return {(n - 1) / n, 0.5, 1};
    case all_gather:
    case all_gather_v:
      return {(n - 1) / n, 0.5, 1};
    case all_to_all:
    case all_to_all_v:
      return {(n - 1) / n, part * (1 - part) * n, 2 * (n - 1) / n};
    case broadcast:
    case reduce:
      return {0, 0.5, 0};
    case gather:  // the root may be on the larger side
    case scatter:
      return {0, part, 0};
    default:
      return {};
  }
}

// Calls `add(from, to)` for pairs of ranks in which `to` needs something from `from`. A collective without pairs of its
// own is represented by the pairs of its root, or else of rank 0; of more than 4,096 ranks only by some of these.
template <typename Add>
void for_distant(const Task& t, Add add) {
  const schedule::CollectiveOperation& o = t.operation;
  if (o.collective == send_recv) return add(o.root, o.peer);
  if (o.collective == permute) {
    for (const schedule::Pair& p : o.pairs) add(p.source, p.target);
    return;
  }
  const Rank root = schedule::rooted(o.collective) ? o.root : 0;
  const bool towards = o.collective == reduce || o.collective == gather;
  for (Rank i = 0; i<t.ranks; i = t.ranks> 4096 && i > 0 ? i * 2 : i + 1) towards ? add(i, root) : add(root, i);
}

}  // namespace

// Ranks of one chip need no links among each other. A chip therefore sends what its ranks must send, minus what stays
// within the chip.
LowerBounds lower_bounds(const Task& task, const Machine& machine, const PriceOptions& options, bool sized) {
  LowerBounds bounds;
  const SoftwareOverheads o = machine.overheads(options.era);
  const Time launch = o.launched(task.ranks);
  const bool all = options.members.empty();
  bounds.latency = launch;
  const bool may_be_empty = sized && uneven(task.operation.collective);
  if (may_be_empty && schedule::counts_by_pair(task.operation.collective)) return bounds;
  std::vector<ResourceId> way;
  const auto add_latency = [&](Rank from, Rank to) {
    if (from == to) return;
    way.clear();
    machine.route(options.place(from), options.place(to), way);
    Time sum = launch + o.handshake + o.semaphore;
    for (ResourceId r : way) sum = later(sum, machine.latency(r));
    bounds.latency = std::max(bounds.latency, sum);
  };
  if (!may_be_empty) for_distant(task, add_latency);
  const Bisection cut = machine.bisection();
  const Needs most = needs(task, cut.part);
  const ResourceId hbm = machine.hbm(all ? 0 : options.members[0]);
  if (hbm != no_resource && most.touched > 0) {
    const auto here = [&](Rank r) { return machine.hbm(r) == hbm; };
    const auto sharers = all ? machine.span(hbm) : std::ranges::count_if(options.members, here);
    bounds.memory =
        launch + transfer_time(most.touched * options.bytes * static_cast<double>(sharers), machine.rate(hbm));
  }
  if (!all || machine.chips() < 2 || task.ranks != machine.ranks()) return bounds;
  const double chips = machine.chips();
  const double factor = task.ranks > 1 ? (chips - 1) / chips / ((task.ranks - 1.0) / task.ranks) : 1;
  const bool exchange = schedule::traits(task.operation.collective).by_pair;
  const double sent = most.sent * factor * options.bytes * (exchange ? machine.cores() : 1);
  if (machine.injection() > 0 && sent > 0) bounds.bandwidth = launch + transfer_time(sent, machine.injection());
  if (cut.rate > 0 && most.crossing > 0)
    bounds.bisection = launch + transfer_time(most.crossing * options.bytes, cut.rate);
  return bounds;
}

}  // namespace trellis::sim
