#include "sim/cluster/network/flow_network.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace trellis::sim {
namespace {

constexpr double byte_work = 1e15;
constexpr std::uint32_t enough_to_pool = 8;  // so many flows that use only one resource are pooled
constexpr std::size_t ahead = 12;            // how many flows to prefetch

}  // namespace

FlowNetwork::FlowNetwork(std::vector<Rate> capacities) {
  table_.resources.resize(capacities.size());
  for (std::size_t i = 0; i < capacities.size(); ++i) table_.resources[i].capacity = capacities[i] * one_use;
  carried_.assign(capacities.size(), 0);
}

void FlowNetwork::start(std::span<const ResourceUse> uses, Work work, std::uint64_t tag) {
  assert(!uses.empty());
  const FlowId id = table_.add(uses);
  Flow& f = table_.flows[id];
  f.left = work, f.since = now_, f.end = 0, f.tag = tag;
  if (work != bytes_.work) bytes_ = {work, static_cast<double>(work) / (byte_work * one_use)};
  ++moving_, ++changes_;
  for (const ResourceUse& use : uses) {
    carried_[use.resource] += bytes_.sixteenths * use.weight;
    if (uses.size() > 1) break_pool(use.resource);
  }
  if (pool_of(f) != none)
    join_pool(id);
  else
    fresh_.push_back(id);
}

void FlowNetwork::remove(FlowId id) {
  Flow& f = table_.flows[id];
  table_.remove(id);
  for (const Part& part : table_.parts_of(f)) {
    Resource& r = table_.resources[part.resource];
    if (r.pool != none || r.binds == 0 || r.changed) continue;
    r.changed = true;
    changed_.push_back(part.resource);
  }
  f.end = 0;
  --moving_, ++changes_;
}

void FlowNetwork::advance(Time to, std::vector<std::uint64_t>& ended) {
  assert(to >= now_ && to <= next());
  now_ = to;
  while (ends_.next() == to) {
    ends_.pop(row_);
    sorter_.sort(row_);
    for (std::size_t i = 0; i < row_.size(); ++i) {
      if (i + ahead < row_.size()) __builtin_prefetch(&table_.flows[row_[i + ahead]]);
      const FlowId id = row_[i];
      const Flow& f = table_.flows[id];
      if (f.end != to) continue;  // stale: the flow has had another rate since
      if (pool_of(f) != none) {
        end_first(table_.parts[f.first].resource, ended);
        continue;
      }
      ended.push_back(f.tag);
      remove(id);
    }
  }
}

// Brings the flow's remaining work up to date.
void FlowNetwork::bring_up(Flow& f) {
  const Work done = static_cast<Work>(f.rate) * static_cast<Work>(now_ - f.since);
  f.left = done < f.left ? f.left - done : 0;
  f.since = now_;
}

// Sets the rate from now on.
void FlowNetwork::give(FlowId id, Rate rate, std::uint32_t bound_by) {
  assert(rate > 0);
  Flow& f = table_.flows[id];
  const bool same = rate == f.rate;
  if (same && bound_by == f.bound_by) return;
  if (!same) bring_up(f);
  table_.set_rate(id, rate, bound_by);
  if (same) return;
  if (f.left != last_.left || rate != last_.rate) last_ = {f.left, rate, time_of(f.left, rate)};
  set_end(id, later(now_, last_.time));
}

void FlowNetwork::set_end(FlowId id, Time end) {
  if (end == table_.flows[id].end) return;
  table_.flows[id].end = end;
  ends_.push(end, id);
}

// Gives a flow that shares nothing the full rate.
bool FlowNetwork::give_alone(FlowId id) {
  Rate rate = std::numeric_limits<Rate>::max();
  std::uint32_t narrowest = none;
  for (const Part& p : table_.parts_of(table_.flows[id])) {
    const Resource& r = table_.resources[p.resource];
    if (r.flows > 1) return false;
    const Rate own = p.weight == one_use ? r.capacity / one_use : r.capacity / p.weight;
    if (own < rate) rate = own, narrowest = p.resource;
  }
  give(id, std::max<Rate>(rate, 1), narrowest);
  return true;
}

// Shares a resource among flows that use nothing else. Returns false if some of its flows do.
bool FlowNetwork::share_one(std::uint32_t resource) {
  const Resource& r = table_.resources[resource];
  if (r.joined > 0) return false;
  if (r.flows >= enough_to_pool) {
    make_pool(resource);
    return true;
  }
  const Rate each = std::max<Rate>(r.capacity / r.weight, 1);
  table_.each_part(r, [&](const Part& part) { give(part.flow, each, resource); });
  return true;
}

// Adds to the region new flows, and flows whose bottleneck is used by new ones or has lost a flow. Easy cases are
// settled at once.
void FlowNetwork::gather(bool all_new) {
  for (const FlowId id : fresh_) {
    const Flow& f = table_.flows[id];
    if (f.bound_by != none || give_alone(id)) continue;  // settled already, with another flow or alone
    if (f.parts > 1 || !share_one(table_.parts[f.first].resource)) region_.join(id);
  }
  if (!all_new) region_.join_bound_beside();
  for (const std::uint32_t resource : changed_) {
    Resource& r = table_.resources[resource];
    r.changed = false;
    if (r.binds > 0 && r.pool == none && !share_one(resource)) region_.join_bound(resource);
  }
}

void FlowNetwork::settle() {
  settle_pools();
  const bool all_new = fresh_.size() == moving_;
  region_.clear();
  gather(all_new);
  region_.solve(all_new);
  solved_ += std::ssize(region_.flows());
  for (std::size_t i = 0; i < region_.flows().size(); ++i)
    give(region_.flows()[i], region_.given()[i].rate, region_.given()[i].by);
  fresh_.clear();
  changed_.clear();
}

void FlowNetwork::leave(const std::function<void(std::span<const ResourceUse>, Work, std::uint64_t)>& tell) {
  for (std::uint32_t r = 0; r < table_.resources.size(); ++r) break_pool(r);
  std::vector<ResourceUse> uses;
  for (Flow& f : table_.flows) {
    if (f.end == 0) continue;
    bring_up(f);
    uses.clear();
    for (const Part& part : table_.parts_of(f)) uses.push_back({part.resource, part.weight});
    tell(uses, f.left, f.tag);
  }
}

Rate FlowNetwork::rate(std::uint64_t tag) const {
  for (const Flow& f : table_.flows)
    if (f.end != 0 && f.tag == tag) {
      const std::uint32_t pool = pool_of(f);
      return pool == none ? f.rate : pools_[pool].rate();
    }
  return 0;
}

}  // namespace trellis::sim
