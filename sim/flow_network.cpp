#include "sim/flow_network.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>

namespace trellis::sim {
namespace {

constexpr Rate unbounded = std::numeric_limits<Rate>::max();
constexpr double byte_work = 1e15;

}  // namespace

FlowNetwork::FlowNetwork(std::vector<Rate> capacities) : lost_(unbounded) {
  resources_.resize(capacities.size());
  for (std::size_t i = 0; i < capacities.size(); ++i) resources_[i].capacity = capacities[i] * one_use;
  carried_.assign(capacities.size(), 0);
}

std::uint32_t FlowNetwork::take_parts(std::size_t count) {
  if (count >= free_parts_.size()) free_parts_.resize(count + 1);
  auto& free = free_parts_[count];
  if (free.empty()) {
    const auto first = static_cast<std::uint32_t>(parts_.size());
    parts_.resize(parts_.size() + count);
    return first;
  }
  const std::uint32_t first = free.back();
  free.pop_back();
  return first;
}

void FlowNetwork::link(FlowId flow, Part& part, std::uint32_t index) {
  Resource& r = resources_[part.resource];
  part.flow = flow;
  part.before = none;
  part.after = r.first;
  if (r.first != none) parts_[r.first].before = index;
  r.first = index;
  ++r.flows;
}

void FlowNetwork::unlink(const Part& part) {
  Resource& r = resources_[part.resource];
  (part.before == none ? r.first : parts_[part.before].after) = part.after;
  if (part.after != none) parts_[part.after].before = part.before;
  --r.flows;
}

void FlowNetwork::start(std::span<const Use> uses, Work work, std::uint64_t tag) {
  FlowId id = static_cast<FlowId>(flows_.size());
  if (free_flows_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_flows_.back();
    free_flows_.pop_back();
  }
  Flow& f = flows_[id];
  f.left = work, f.rate = 0, f.since = now_, f.end = 0, f.tag = tag, f.fresh = true;
  f.parts = static_cast<std::uint16_t>(uses.size());
  f.first = take_parts(uses.size());
  const double bytes = static_cast<double>(work) / (byte_work * one_use);
  for (std::uint32_t i = 0; i < f.parts; ++i) {
    Part& part = parts_[f.first + i];
    part.resource = uses[i].resource, part.weight = uses[i].weight;
    link(id, part, f.first + i);
    carried_[part.resource] += bytes * part.weight;
  }
  fresh_.push_back(id);
  ++counts_.flows;
}

void FlowNetwork::remove(FlowId id) {
  Flow& f = flows_[id];
  for (const Part& part : parts(f)) {
    unlink(part);
    if (resources_[part.resource].flows > 0) {
      changed_.push_back(part.resource);
      lost_ = std::min(lost_, f.rate);
    }
  }
  free_parts_[f.parts].push_back(f.first);
  f.end = 0;
  free_flows_.push_back(id);
}

void FlowNetwork::advance(Time to, std::vector<std::uint64_t>& ended) {
  assert(to >= now_ && to <= next());
  now_ = to;
  while (ends_.next() == to) {
    ends_.pop(row_);
    for (const End& e : row_) {
      if (flows_[e.flow].end != e.end) continue;  // it has got another rate since
      ended.push_back(flows_[e.flow].tag);
      remove(e.flow);
    }
  }
}

bool FlowNetwork::alone(const Flow& f) {
  return std::ranges::all_of(parts(f), [&](const Part& p) { return resources_[p.resource].flows == 1; });
}

Rate FlowNetwork::lone_rate(const Flow& f) {
  Rate rate = unbounded;
  for (const Part& p : parts(f)) rate = std::min(rate, resources_[p.resource].capacity / p.weight);
  return rate;
}

// Sets the rate from now on.
void FlowNetwork::give(Flow& f, FlowId id, Rate rate) {
  if (!f.fresh && rate == f.rate) return;
  const Work done = static_cast<Work>(f.rate) * static_cast<Work>(now_ - f.since);
  f.left = done < f.left ? f.left - done : 0;
  f.since = now_;
  f.rate = rate;
  f.fresh = false;
  assert(rate > 0);
  const auto speed = static_cast<Work>(rate);
  const Time end = rate == unbounded ? now_ : now_ + static_cast<Time>((f.left + speed - 1) / speed);
  if (end == f.end) return;
  f.end = end;
  ends_.push(end, {id, end});
}

// What every flow on the resource could have if those that are slower stay as they are and all others want more.
Rate FlowNetwork::fair_share(std::uint32_t resource) {
  const Resource& r = resources_[resource];
  Rate share = 0;
  for (Rate bound = unbounded;;) {
    Rate left = r.capacity;
    std::int64_t weight = 0;
    for (std::uint32_t i = r.first; i != none; i = parts_[i].after) {
      const Flow& f = flows_[parts_[i].flow];
      if (f.fresh || f.rate >= share || bound == unbounded)
        weight += parts_[i].weight;
      else
        left -= parts_[i].weight * f.rate;
    }
    if (weight == 0) return share;
    const Rate each = left / weight;
    if (bound != unbounded && each <= share) return share;
    bound = share = each;
  }
}

// The lowest rate at which sharing can differ from what it was. Up to there it goes as before: a flow that has ended
// was no bottleneck's below its own rate, and one that is new can be none's below its fair share.
Rate FlowNetwork::lowest_change() {
  Rate lowest = lost_;
  ++mark_;
  for (FlowId id : fresh_)
    for (const Part& p : parts(flows_[id])) {
      Resource& r = resources_[p.resource];
      if (r.mark == mark_) continue;
      r.mark = mark_;
      lowest = std::min(lowest, fair_share(p.resource));
    }
  return lowest;
}

void FlowNetwork::visit(std::uint32_t resource) {
  Resource& r = resources_[resource];
  if (r.mark == mark_) return;
  r.mark = mark_;
  r.place = static_cast<std::uint32_t>(shares_.size());
  shares_.push_back({resource, r.capacity, 0});
}

// The flows that a change can reach, and all resources that they are on.
void FlowNetwork::gather(Rate from) {
  ++mark_;
  shares_.clear();
  region_.clear();
  for (std::uint32_t resource : changed_) visit(resource);
  for (FlowId id : fresh_)
    for (const Part& p : parts(flows_[id])) visit(p.resource);
  for (std::size_t next = 0; next < shares_.size(); ++next) {
    Rate left = shares_[next].left;
    std::int64_t weight = 0;
    for (std::uint32_t i = resources_[shares_[next].resource].first; i != none; i = parts_[i].after) {
      const Part& part = parts_[i];
      Flow& f = flows_[part.flow];
      if (!f.fresh && f.rate < from) {
        left -= part.weight * f.rate;
        continue;
      }
      weight += part.weight;
      if (f.mark == mark_) continue;
      f.mark = mark_;
      region_.push_back(part.flow);
      for (const Part& p : parts(f)) visit(p.resource);
    }
    shares_[next].left = left, shares_[next].weight = weight;
  }
}

// Water filling: the resource with the least for each of its flows sets their rate, then the next. Those that offer the
// same do so at once, so that no order matters.
void FlowNetwork::fill() {
  offers_.clear();
  for (std::uint32_t i = 0; i < shares_.size(); ++i)
    if (shares_[i].weight > 0) offers_.push_back({shares_[i].each(), i});
  std::ranges::make_heap(offers_, std::greater<>());
  const auto pop = [&] {
    std::ranges::pop_heap(offers_, std::greater<>());
    const Offer offer = offers_.back();
    offers_.pop_back();
    return offer;
  };
  while (!offers_.empty()) {
    const Rate each = offers_.front().each;
    tight_.clear();
    while (!offers_.empty() && offers_.front().each == each) {
      const Offer offer = pop();
      const Share& share = shares_[offer.share];
      if (share.weight == 0) continue;
      if (share.each() == each) {
        tight_.push_back(offer.share);
      } else {
        offers_.push_back({share.each(), offer.share});
        std::ranges::push_heap(offers_, std::greater<>());
      }
    }
    for (std::uint32_t t : tight_)
      for (std::uint32_t i = resources_[shares_[t].resource].first; i != none; i = parts_[i].after) {
        Flow& f = flows_[parts_[i].flow];
        if (f.mark != mark_) continue;
        f.mark = mark_ - 1;
        for (const Part& p : parts(f)) {
          Share& share = shares_[resources_[p.resource].place];
          share.left -= p.weight * each;
          share.weight -= p.weight;
        }
        give(f, parts_[i].flow, std::max<Rate>(each, 1));
      }
  }
}

void FlowNetwork::settle() {
  bool solve = !changed_.empty();
  for (FlowId id : fresh_) {
    Flow& f = flows_[id];
    if (alone(f))
      give(f, id, lone_rate(f));
    else
      solve = true;
  }
  if (solve) {
    std::erase_if(fresh_, [&](FlowId id) { return !flows_[id].fresh; });
    gather(lowest_change());
    ++counts_.solves;
    counts_.solved_flows += static_cast<std::int64_t>(region_.size());
    fill();
  }
  fresh_.clear();
  changed_.clear();
  lost_ = unbounded;
}

Rate FlowNetwork::rate(std::uint64_t tag) const {
  for (const Flow& f : flows_)
    if (f.end != 0 && f.tag == tag) return f.rate;
  return 0;
}

}  // namespace trellis::sim
