#include <algorithm>
#include <limits>
#include <unordered_map>

#include "sim/price.h"

namespace trellis::sim {
namespace {

using enum schedule::Collective;
using schedule::Task;

// Of the larger buffer: what a rank must send at least, what must cross from one half of the ranks to the other, and
// what a rank must read and write of memory.
struct Needs {
  double sent = 0, crossing = 0, touched = 0;
};

Needs needs(const Task& t) {
  const double n = t.ranks;
  if (t.ranks < 2) return {};
  switch (t.collective) {
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

// The way between two ranks, as one transfer finds it that meets no other.
struct Lone {
  std::vector<ResourceId> links = {};
  Time latency = 0;
  double rate = 0;  // bytes a second
};

Lone lone(const Machine& machine, Rank from, Rank to) {
  Lone way;
  machine.route(from, to, way.links);
  double narrowest = std::numeric_limits<double>::infinity();
  for (const ResourceId r : way.links) {
    way.latency += machine.latency(r);
    narrowest = std::min(narrowest, machine.rate(r));
  }
  way.rate = way.links.empty() ? 0 : narrowest;
  return way;
}

}  // namespace

double bus_factor(const Task& t) {
  const double n = t.ranks;
  switch (t.collective) {
    case all_reduce:
      return 2 * (n - 1) / n;
    case reduce_scatter:
    case reduce_scatter_v:
    case all_gather:
    case all_gather_v:
    case all_to_all:
    case all_to_all_v:
    case gather:
    case scatter:
      return (n - 1) / n;
    default:
      return 1;
  }
}

// Ranks of one chip need not send each other anything over links, so that a chip sends its ranks' parts but what
// belongs within it.
Bounds lower_bounds(const Task& task, const Machine& machine, const PriceOptions& options) {
  Bounds bounds;
  const Overheads o = machine.overheads(options.era);
  const bool all = options.members.empty();
  bounds.latency = o.launch;
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
        o.launch + transfer_time(most.touched * options.bytes * static_cast<double>(sharers), machine.rate(hbm));
  }
  if (!all || machine.chips() < 2 || task.ranks != machine.ranks()) return bounds;
  const double chips = machine.chips();
  const double factor = task.ranks > 1 ? (chips - 1) / chips / ((task.ranks - 1.0) / task.ranks) : 1;
  const bool exchange = task.collective == all_to_all || task.collective == all_to_all_v;
  const double sent = most.sent * factor * options.bytes * (exchange ? machine.cores() : 1);
  if (machine.injection() > 0 && sent > 0) bounds.bandwidth = o.launch + transfer_time(sent, machine.injection());
  if (machine.bisection() > 0 && most.crossing > 0)
    bounds.bisection = o.launch + transfer_time(most.crossing * options.bytes, machine.bisection());
  return bounds;
}

// Within a chip a transfer may need no bytes of its own, a local step may be part of another, and chunks may be empty:
// these take nothing here but the handshake. Waiting for others is left out.
Time least_time(const schedule::Program& program, Rank rank, const Task& task, const Machine& machine,
                const PriceOptions& options) {
  const Overheads o = machine.overheads(options.era);
  const auto chunks = static_cast<double>(std::max<std::int64_t>(1, schedule::data_chunks(task)));
  const double chunk = options.bytes < options.element * chunks ? 0 : options.bytes / chunks;
  const auto place = [&](Rank r) { return options.members.empty() ? r : options.members[r]; };
  std::unordered_map<std::int64_t, Lone> ways;  // by peer and direction
  std::unordered_map<ResourceId, double> loads;
  std::vector<Time> ends(program.steps.size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const schedule::Step& s = program.steps[i];
    for (const std::int32_t before : program.after(s)) ends[i] = std::max(ends[i], ends[before]);
    ends[i] += o.semaphore;
    if (!sends(s.op) && !receives(s.op)) continue;
    const bool out = sends(s.op);
    const auto [found, fresh] = ways.try_emplace(std::int64_t{s.end.peer} * 2 + (out ? 1 : 0));
    Lone& way = found->second;
    if (fresh)
      way = out ? lone(machine, place(rank), place(s.end.peer)) : lone(machine, place(s.end.peer), place(rank));
    const double bytes = way.links.empty() ? 0 : chunk * (out ? s.from : s.to).count;
    ends[i] += o.handshake + (out ? 0 : way.latency);
    if (bytes <= 0) continue;
    ends[i] += o.dma_start + static_cast<Time>(bytes / way.rate * static_cast<double>(second));
    for (const ResourceId r : way.links) loads[r] += bytes;
    if (const ResourceId r = machine.hbm(place(rank)); r != no_resource) loads[r] += bytes;
    if (const ResourceId r = machine.dma(place(rank)); r != no_resource && out) loads[r] += 2 * bytes;
  }
  double longest = 0;
  for (const auto& [r, bytes] : loads) longest = std::max(longest, bytes / machine.rate(r));
  constexpr double rounding = 1e-5;
  Time least = static_cast<Time>(longest * static_cast<double>(second));
  for (const Time end : ends) least = std::max(least, end);
  return o.launch + static_cast<Time>(static_cast<double>(least) * (1 - rounding));
}

}  // namespace trellis::sim
