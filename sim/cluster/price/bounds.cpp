#include <algorithm>

#include "schedule/collective_traits.h"
#include "sim/cluster/price/price.h"

namespace trellis::sim {
namespace {

using enum schedule::Collective;
using schedule::Task;

// Lower bounds, in parts of the larger buffer: what a rank must send, what must cross from one half of the ranks to the
// other, and what a rank must read and write in memory.
struct Needs {
  double sent = 0, crossing = 0, touched = 0;
};

Needs needs(const Task& t) {
  const double n = t.ranks;
  if (t.ranks < 2) return {};
  switch (t.operation.collective) {
    case all_reduce:
      return {2 * (n - 1) / n, 1, 2};
    case reduce_scatter:
    case reduce_scatter_v:
      return {(n - 1) / n, 0.5, 1 + 1 / n};
    case all_gather:
    case all_gather_v:
      return {(n - 1) / n, 0.5, 1};
    case all_to_all:
    case all_to_all_v:
      return {(n - 1) / n, n / 4, 2 * (n - 1) / n};
    case broadcast:
    case reduce:
    case gather:
    case scatter:
      return {0, 0.5, 0};
    default:
      return {};
  }
}

}  // namespace

// Ranks of one chip need no links among each other. A chip therefore sends what its ranks must send, minus what stays
// within the chip.
Bounds lower_bounds(const Task& task, const Machine& machine, const PriceOptions& options) {
  Bounds bounds;
  const Overheads o = machine.overheads(options.era);
  const Time launch = o.launched(task.ranks);
  const bool all = options.members.empty();
  bounds.latency = launch;
  if (task.ranks > 1) {
    Time farthest = 0;
    std::vector<ResourceId> way;
    const Rank first = all ? 0 : options.members[0];
    for (Rank i = 1; i<task.ranks; i = task.ranks> 4096 ? i * 2 : i + 1) {
      way.clear();
      machine.route(first, all ? i : options.members[i], way);
      Time sum = 0;
      for (ResourceId r : way) sum += machine.latency(r);
      farthest = std::max(farthest, sum);
    }
    bounds.latency += o.handshake + farthest + o.semaphore;
  }
  const Needs most = needs(task);
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
  if (machine.bisection() > 0 && most.crossing > 0)
    bounds.bisection = launch + transfer_time(most.crossing * options.bytes, machine.bisection());
  return bounds;
}

}  // namespace trellis::sim
