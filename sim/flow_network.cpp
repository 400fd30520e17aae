#include "sim/flow_network.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <limits>

namespace trellis::sim {
namespace {

constexpr Rate unbounded = std::numeric_limits<Rate>::max();
constexpr double byte_work = 1e15;

constexpr std::uint32_t enough_to_pool = 8;  // flows on one resource and nothing else
constexpr std::size_t most_nearby = 64;      // flows
constexpr std::size_t ahead = 12;            // flows, of which memory is asked for before they are come to

}  // namespace

FlowNetwork::FlowNetwork(std::vector<Rate> capacities) : lost_(unbounded) {
  resources_.resize(capacities.size());
  for (std::size_t i = 0; i < capacities.size(); ++i) resources_[i].capacity = capacities[i] * one_use;
  carried_.assign(capacities.size(), 0);
}

// With room for its parts, which a flow keeps when it has ended.
FlowNetwork::FlowId FlowNetwork::take_flow(std::size_t parts) {
  const FlowId id = free_.take();
  if (id == flows_.size()) flows_.emplace_back();
  Flow& f = flows_[id];
  f.parts = static_cast<std::uint16_t>(parts);
  if (f.room >= f.parts) return id;
  f.first = static_cast<std::uint32_t>(parts_.size());
  f.room = f.parts;
  parts_.resize(parts_.size() + parts);
  return id;
}

void FlowNetwork::link(FlowId flow, std::uint32_t index) {
  Part& part = parts_[index];
  Resource& r = resources_[part.resource];
  part.flow = flow;
  part.before = none;
  part.after = r.first;
  if (r.first != none) parts_[r.first].before = index;
  r.first = index;
  ++r.flows;
  if (flows_[flow].parts > 1) ++r.joined;
}

void FlowNetwork::unlink(const Flow& f, const Part& part) {
  Resource& r = resources_[part.resource];
  (part.before == none ? r.first : parts_[part.before].after) = part.after;
  if (part.after != none) parts_[part.after].before = part.before;
  --r.flows;
  if (f.parts > 1) --r.joined;
}

void FlowNetwork::start(std::span<const Use> uses, Work work, std::uint64_t tag) {
  const FlowId id = take_flow(uses.size());
  Flow& f = flows_[id];
  f.left = work, f.rate = 0, f.since = now_, f.end = 0, f.tag = tag, f.fresh = true;
  if (work != bytes_.work) bytes_ = {work, static_cast<double>(work) / (byte_work * one_use)};
  ++moving_;
  for (std::uint32_t i = 0; i < f.parts; ++i) {
    Part& part = parts_[f.first + i];
    part.resource = uses[i].resource, part.weight = uses[i].weight;
    link(id, f.first + i);
    carried_[part.resource] += bytes_.sixteenths * part.weight;
    if (f.parts > 1) break_pool(part.resource);
  }
  if (pool_of(f) != none)
    join_pool(id);
  else
    fresh_.push_back(id);
}

void FlowNetwork::remove(FlowId id) {
  Flow& f = flows_[id];
  for (const Part& part : parts(f)) {
    unlink(f, part);
    const Resource& r = resources_[part.resource];
    if (r.flows > 0 && r.pool == none) {
      changed_.push_back(part.resource);
      lost_ = std::min(lost_, f.rate);
    }
  }
  f.end = 0;
  free_.give_back(id);
  --moving_;
}

void FlowNetwork::advance(Time to, std::vector<std::uint64_t>& ended) {
  assert(to >= now_ && to <= next());
  now_ = to;
  while (ends_.next() == to) {
    ends_.pop(row_);
    sorter_.sort(row_);
    for (std::size_t i = 0; i < row_.size(); ++i) {
      if (i + ahead < row_.size()) __builtin_prefetch(&flows_[row_[i + ahead]]);
      const FlowId id = row_[i];
      const Flow& f = flows_[id];
      if (f.end != to) continue;  // it has got another rate since
      if (pool_of(f) != none) {
        end_first(parts_[f.first].resource, ended);
        continue;
      }
      ended.push_back(f.tag);
      remove(id);
    }
  }
}

// What a flow can have that shares nothing; 0 for one that does.
Rate FlowNetwork::lone_rate(const Flow& f) {
  Rate rate = unbounded;
  for (const Part& p : parts(f)) {
    const Resource& r = resources_[p.resource];
    if (r.flows > 1) return 0;
    rate = std::min(rate, p.weight == one_use ? r.capacity / one_use : r.capacity / p.weight);
  }
  return std::max<Rate>(rate, 1);
}

// What is left of it is so now.
void FlowNetwork::bring_up(Flow& f) {
  const Work done = static_cast<Work>(f.rate) * static_cast<Work>(now_ - f.since);
  f.left = done < f.left ? f.left - done : 0;
  f.since = now_;
}

// Sets the rate from now on.
void FlowNetwork::give(Flow& f, FlowId id, Rate rate) {
  assert(rate > 0);
  if (!f.fresh && rate == f.rate) return;
  bring_up(f);
  f.rate = rate;
  f.fresh = false;
  if (f.left != last_.left || rate != last_.rate) last_ = {f.left, rate, rate == unbounded ? 0 : time_of(f.left, rate)};
  set_end(id, now_ + last_.time);
}

void FlowNetwork::set_end(FlowId id, Time end) {
  if (end == flows_[id].end) return;
  flows_[id].end = end;
  ends_.push(end, id);
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

// From the resources visited so far: the flows that a change to these can reach, and all resources that they are on.
// False: they are more than `most`.
bool FlowNetwork::gather(Rate from, std::size_t most) {
  region_.clear();
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
      if (region_.size() == most) return false;
      region_.push_back(part.flow);
      for (const Part& p : parts(f)) visit(p.resource);
    }
    shares_[next].left = left, shares_[next].weight = weight;
  }
  return true;
}

// Where all flows on a resource are on nothing else.
bool FlowNetwork::share_one(std::uint32_t resource) {
  Resource& r = resources_[resource];
  if (r.joined > 0) return false;
  r.mark = mark_;
  if (r.flows >= enough_to_pool) {
    make_pool(resource);
    return true;
  }
  std::int64_t weight = 0;
  for (std::uint32_t i = r.first; i != none; i = parts_[i].after) weight += parts_[i].weight;
  const Rate each = std::max<Rate>(r.capacity / weight, 1);
  for (std::uint32_t i = r.first; i != none; i = parts_[i].after) give(flows_[parts_[i].flow], parts_[i].flow, each);
  return true;
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
    const FlowOffer offer = offers_.back();
    offers_.pop_back();
    return offer;
  };
  while (!offers_.empty()) {
    const Rate each = offers_.front().each;
    tight_.clear();
    while (!offers_.empty() && offers_.front().each == each) {
      const FlowOffer offer = pop();
      const FlowShare& share = shares_[offer.share];
      if (share.weight == 0) continue;
      if (share.each() == each) {
        tight_.push_back(offer.share);
      } else {
        offers_.push_back({share.each(), offer.share});
        std::ranges::push_heap(offers_, std::greater<>());
      }
    }
    if (offers_.empty()) {  // there is nothing else: all that are left get it
      for (FlowId id : region_)
        if (flows_[id].mark == mark_) give(flows_[id], id, std::max<Rate>(each, 1));
      return;
    }
    for (std::uint32_t t : tight_)
      for (std::uint32_t i = resources_[shares_[t].resource].first; i != none; i = parts_[i].after) {
        Flow& f = flows_[parts_[i].flow];
        if (f.mark != mark_) continue;
        f.mark = mark_ - 1;
        for (const Part& p : parts(f)) {
          FlowShare& share = shares_[resources_[p.resource].place];
          share.left -= p.weight * each;
          share.weight -= p.weight;
        }
        give(f, parts_[i].flow, std::max<Rate>(each, 1));
      }
  }
}

// Every change by itself, with all that it can reach. False: one can reach too much for that.
bool FlowNetwork::solve_nearby() {
  ++mark_;
  Rate from = fresh_.size() == moving_ ? 0 : -1;  // not known yet
  const auto find_from = [&] {
    if (from >= 0) return;
    from = lowest_change();
    ++mark_;
  };
  for (FlowId id : fresh_) {
    Flow& f = flows_[id];
    if (!f.fresh) continue;  // settled together with another
    if (const Rate rate = lone_rate(f); rate > 0) {
      give(f, id, rate);
      continue;
    }
    if (f.parts == 1 && share_one(parts_[f.first].resource)) continue;
    find_from();
    shares_.clear();
    for (const Part& p : parts(f)) visit(p.resource);
    if (!gather(from, most_nearby)) return false;
    fill();
  }
  for (std::uint32_t resource : changed_) {
    if (resources_[resource].mark == mark_ || resources_[resource].flows == 0 || share_one(resource)) continue;
    find_from();
    shares_.clear();
    visit(resource);
    if (!gather(from, most_nearby)) return false;
    fill();
  }
  return true;
}

// Nothing is on its way but what is new.
void FlowNetwork::gather_fresh() {
  region_ = fresh_;
  for (FlowId id : region_) {
    flows_[id].mark = mark_;
    for (const Part& p : parts(flows_[id])) {
      visit(p.resource);
      shares_[resources_[p.resource].place].weight += p.weight;
    }
  }
}

// All changes at once, with what they can reach.
void FlowNetwork::solve_reached() {
  const bool all_new = fresh_.size() == moving_;
  std::erase_if(fresh_, [&](FlowId id) { return !flows_[id].fresh; });
  if (all_new) {
    ++mark_;
    shares_.clear();
    gather_fresh();
    return fill();
  }
  const Rate from = lowest_change();
  ++mark_;
  shares_.clear();
  for (std::uint32_t resource : changed_)
    if (resources_[resource].pool == none) visit(resource);
  for (FlowId id : fresh_)
    for (const Part& p : parts(flows_[id])) visit(p.resource);
  gather(from, flows_.size());
  fill();
}

void FlowNetwork::settle() {
  settle_pools();
  if (!solve_nearby()) solve_reached();
  fresh_.clear();
  changed_.clear();
  lost_ = unbounded;
}

Rate FlowNetwork::rate(std::uint64_t tag) const {
  for (const Flow& f : flows_)
    if (f.end != 0 && f.tag == tag) {
      const std::uint32_t pool = pool_of(f);
      return pool == none ? f.rate : pools_[pool].rate();
    }
  return 0;
}

}  // namespace trellis::sim
