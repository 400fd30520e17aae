#include "sim/cluster/network/flow_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "schedule/schedule_too_large.h"

namespace trellis::sim {

void FlowTable::list(std::uint32_t part, std::uint32_t& first) {
  parts[part].before = none;
  parts[part].after = first;
  if (first != none) parts[first].before = part;
  first = part;
}

void FlowTable::unlist(const Part& part, std::uint32_t& first) {
  (part.before == none ? first : parts[part.before].after) = part.after;
  if (part.after != none) parts[part.after].before = part.before;
}

// The slots of an ended flow's parts are reused by the next flow with its number.
FlowTable::FlowId FlowTable::add(std::span<const ResourceUse> uses) {
  const FlowId id = free_.take();
  if (id == flows.size()) flows.emplace_back();
  Flow& f = flows[id];
  if (f.room < uses.size()) {
    if (uses.size() > std::numeric_limits<decltype(f.parts)>::max())
      throw schedule::ScheduleTooLarge(fmt::format("a transfer over {} links and memories: expected at most {}",
                                                   uses.size(), std::numeric_limits<decltype(f.parts)>::max()));
    f.first = static_cast<std::uint32_t>(parts.size());
    f.room = static_cast<std::uint16_t>(uses.size());
    parts.resize(parts.size() + uses.size());
  }
  f.parts = static_cast<std::uint16_t>(uses.size());
  f.rate = 0, f.bound_by = none;
  for (std::uint32_t i = 0; i < f.parts; ++i) {
    Part& part = parts[f.first + i];
    part.resource = uses[i].resource, part.weight = uses[i].weight, part.flow = id;
    Resource& r = resources[part.resource];
    list(f.first + i, r.free);
    ++r.flows, r.weight += part.weight;
    if (f.parts > 1) ++r.joined;
  }
  return id;
}

void FlowTable::remove(FlowId id) {
  const Flow& f = flows[id];
  for (const Part& part : parts_of(f)) {
    Resource& r = resources[part.resource];
    const bool bound = f.bound_by == part.resource;
    unlist(part, bound ? r.bound : r.free);
    --r.flows, r.weight -= part.weight;
    if (f.parts > 1) --r.joined;
    if (r.pool != none) continue;
    r.used -= part.weight * f.rate;
    r.binds -= bound ? 1 : 0;
  }
  free_.give_back(id);
}

void FlowTable::bind(std::uint32_t part, bool bound) {
  Resource& r = resources[parts[part].resource];
  unlist(parts[part], bound ? r.free : r.bound);
  list(part, bound ? r.bound : r.free);
  r.binds += bound ? 1 : -1;
}

void FlowTable::set_rate(FlowId id, Rate rate, std::uint32_t bound_by) {
  Flow& f = flows[id];
  for (std::uint32_t i = f.first; i < f.first + f.parts; ++i) {
    const std::uint32_t resource = parts[i].resource;
    Resource& r = resources[resource];
    r.used += parts[i].weight * (rate - f.rate);
    if (resource != bound_by) r.fastest = std::max(r.fastest, rate);
    if (bound_by != f.bound_by && (resource == bound_by || resource == f.bound_by)) bind(i, resource == bound_by);
  }
  f.rate = rate, f.bound_by = bound_by;
}

}  // namespace trellis::sim
