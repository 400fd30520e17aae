#include "sim/cluster/network/flow_network.h"

namespace trellis::sim {
namespace {

constexpr std::uint32_t too_few = 3;  // a pool with fewer flows is broken up

}  // namespace

std::uint32_t FlowNetwork::pool_of(const Flow& f) const {
  return f.parts == 1 ? table_.resources[table_.parts[f.first].resource].pool : none;
}

// Makes a pool of all flows on the resource.
void FlowNetwork::make_pool(std::uint32_t resource) {
  Resource& r = table_.resources[resource];
  r.pool = free_pools_.take();
  if (r.pool == pools_.size()) pools_.emplace_back();
  FairShareQueue& pool = pools_[r.pool];
  pool.open(r.capacity, now_);
  table_.each_part(r, [&](const Part& part) {
    bring_up(table_.flows[part.flow]);
    add(pool, part.flow);
  });
  watch_first(pool);
}

void FlowNetwork::add(FairShareQueue& pool, FlowId id) {
  Flow& f = table_.flows[id];
  pool.add(id, f.left, table_.parts[f.first].weight);
  if (f.bound_by == none) table_.bind(f.first, true);
  f.bound_by = table_.parts[f.first].resource;
  f.end = in_pool;
}

void FlowNetwork::join_pool(FlowId id) {
  const std::uint32_t resource = table_.parts[table_.flows[id].first].resource;
  FairShareQueue& pool = pools_[table_.resources[resource].pool];
  pool.catch_up(now_);
  add(pool, id);
  changed_pools_.push_back(resource);
}

// Puts into the queue of ends only the flow of the pool that ends first.
void FlowNetwork::watch_first(FairShareQueue& pool) {
  const FairShareQueue::Member& first = pool.first();
  if (pool.watched != first.flow && pool.watched != none) table_.flows[pool.watched].end = in_pool;
  pool.watched = first.flow;
  set_end(first.flow, pool.end(first));
}

void FlowNetwork::end_first(std::uint32_t resource, std::vector<std::uint64_t>& ended) {
  FairShareQueue& pool = pools_[table_.resources[resource].pool];
  pool.catch_up(now_);
  for (; pool.first_has_ended(); pool.drop_first()) {
    ended.push_back(table_.flows[pool.first().flow].tag);
    remove(pool.first().flow);
  }
  pool.watched = none;
  changed_pools_.push_back(resource);
}

// The pool's flows go on at their rates as single flows.
void FlowNetwork::break_pool(std::uint32_t resource) {
  Resource& r = table_.resources[resource];
  if (r.pool == none) return;
  FairShareQueue& pool = pools_[r.pool];
  pool.catch_up(now_);
  r.used = 0, r.binds = 0;
  for (const FairShareQueue::Member& m : pool.members()) {
    Flow& f = table_.flows[m.flow];
    f.left = pool.left(m), f.rate = pool.rate(), f.since = now_;
    r.used += m.weight * f.rate, ++r.binds;
    set_end(m.flow, pool.end(m));
  }
  pool.close();
  free_pools_.give_back(r.pool);
  r.pool = none;
}

void FlowNetwork::settle_pools() {
  for (const std::uint32_t resource : changed_pools_) {
    const Resource& r = table_.resources[resource];
    if (r.pool == none) continue;
    if (r.flows <= too_few)
      break_pool(resource);
    else
      watch_first(pools_[r.pool]);
  }
  changed_pools_.clear();
}

}  // namespace trellis::sim
