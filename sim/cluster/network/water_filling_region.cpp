#include "sim/cluster/network/water_filling_region.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace trellis::sim {
namespace {

constexpr Rate unbounded = std::numeric_limits<Rate>::max();
constexpr int most_rounds = 12;  // after these, all flows join

}  // namespace

void WaterFillingRegion::clear() {
  flows_.clear();
  given_.clear();
  shares_.clear();
}

bool WaterFillingRegion::holds(FlowId id) const {
  const std::uint32_t place = t_.flows[id].place;
  return place < flows_.size() && flows_[place] == id;
}

// The flow's rate by the last fill(), or its old rate if it was not yet in the region then.
Rate WaterFillingRegion::rate_now(FlowId id) const {
  const Flow& f = t_.flows[id];
  return holds(id) && f.place < given_.size() ? given_[f.place].rate : f.rate;
}

void WaterFillingRegion::visit(std::uint32_t resource) {
  Resource& r = t_.resources[resource];
  if (r.place < shares_.size() && shares_[r.place].resource == resource) return;
  r.place = static_cast<std::uint32_t>(shares_.size());
  shares_.push_back({.resource = resource, .others = r.binds});
}

void WaterFillingRegion::join(FlowId id) {
  if (holds(id)) return;
  Flow& f = t_.flows[id];
  f.place = static_cast<std::uint32_t>(flows_.size());
  flows_.push_back(id);
  for (const Part& p : t_.parts_of(f)) visit(p.resource);
  if (f.bound_by != none) --shares_[t_.resources[f.bound_by].place].others;
}

// Adds to the region all flows whose rates the resource sets.
void WaterFillingRegion::join_bound(std::uint32_t resource) {
  visit(resource);
  const Resource& r = t_.resources[resource];
  if (shares_[r.place].others == 0) return;
  for (std::uint32_t i = r.bound; i != none; i = t_.parts[i].after) join(t_.parts[i].flow);
}

void WaterFillingRegion::join_bound_beside() {
  for (std::size_t i = 0, count = flows_.size(); i < count; ++i)
    for (const Part& p : t_.parts_of(t_.flows[flows_[i]])) join_bound(p.resource);
}

// Computes what each resource has for the region's flows, and how many they are.
void WaterFillingRegion::open_shares() {
  for (Share& share : shares_) {
    const Resource& r = t_.resources[share.resource];
    share.left = r.capacity - r.used, share.weight = 0, share.level = 0, share.members = 0;
  }
  for (const FlowId id : flows_)
    for (const Part& p : t_.parts_of(t_.flows[id])) {
      Share& share = share_of(p);
      share.left += p.weight * t_.flows[id].rate;
      share.weight += p.weight, ++share.members;
    }
  given_.assign(flows_.size(), {});
  members_.clear();
}

// Groups the flows by resource, except those that have joined since the last fill().
void WaterFillingRegion::list_members() {
  if (!members_.empty()) return;
  std::uint32_t end = 0;
  for (Share& share : shares_) end += share.members, share.first_member = end;
  members_.resize(end);
  for (std::size_t i = 0; i < given_.size(); ++i)
    for (const Part& p : t_.parts_of(t_.flows[flows_[i]])) members_[--share_of(p).first_member] = flows_[i];
}

// Water filling: the resource that offers the least to each of its flows sets their rate, then the next one. Equal
// offers are settled together, so no order matters.
void WaterFillingRegion::fill() {
  open_shares();
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
    if (offers_.empty()) return set_rest(each);
    list_members();
    for (const std::uint32_t t : tight_) set_tight(shares_[t], each);
  }
}

// A tight resource sets the rates of all its flows that have none yet.
void WaterFillingRegion::set_tight(Share& tight, Rate each) {
  if (tight.weight == 0) return;
  tight.level = std::max<Rate>(each, 1);
  for (std::uint32_t i = tight.first_member; i < tight.first_member + tight.members; ++i) {
    const Flow& f = t_.flows[members_[i]];
    if (given_[f.place].by != none) continue;
    given_[f.place] = {tight.level, tight.resource};
    for (const Part& p : t_.parts_of(f)) {
      Share& share = share_of(p);
      share.left -= p.weight * each;
      share.weight -= p.weight;
    }
  }
}

// All flows without a rate get the same one: every resource that is still used by such flows offers it.
void WaterFillingRegion::set_rest(Rate each) {
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (given_[i].by != none) continue;
    for (const Part& p : t_.parts_of(t_.flows[flows_[i]])) {
      Share& share = share_of(p);
      if (given_[i].by == none) {
        given_[i] = {std::max<Rate>(each, 1), p.resource};
        share.level = given_[i].rate;
      }
      share.left -= p.weight * each;
    }
  }
}

// Adds unchanged flows where the result is not what all flows together would get. Returns false if there were none.
bool WaterFillingRegion::widen(bool all) {
  const std::size_t before = flows_.size();
  for (std::size_t i = 0, count = shares_.size(); i < count; ++i)
    if (const Share share = shares_[i]; share.members < t_.resources[share.resource].flows) widen_at(share);
  if (all && flows_.size() > before) join_all();
  return flows_.size() > before;
}

// Adds flows where an invariant fails: a bottleneck gives no flow more than its level, and leaves nothing that its
// flows could share.
void WaterFillingRegion::widen_at(const Share& share) {
  Resource& r = t_.resources[share.resource];
  std::uint32_t other = share.others > 0 ? r.bound : none;
  while (other != none && holds(t_.parts[other].flow)) other = t_.parts[other].after;
  const Rate theirs = other == none ? 0 : t_.flows[t_.parts[other].flow].rate;
  if (share.level > 0) {
    if (other != none && theirs != share.level) join_bound(share.resource);
    if (r.fastest > share.level) join_faster(r, share.level);
  } else if (other != none && !still_sets(share, theirs)) {
    return join_bound(share.resource);
  }
  if (share.left < r.weight) join_ties(share, std::max(share.level, theirs));
}

// Adds the flows that have their bottleneck elsewhere and a rate above `level`.
void WaterFillingRegion::join_faster(Resource& r, Rate level) {
  r.fastest = 0;
  for (std::uint32_t i = r.free; i != none; i = t_.parts[i].after) {
    const Rate rate = t_.flows[t_.parts[i].flow].rate;
    r.fastest = std::max(r.fastest, rate);
    if (rate > level) join(t_.parts[i].flow);
  }
}

bool WaterFillingRegion::any_member(const Share& share, Rate above, Rate below) {
  list_members();
  const auto* const first = members_.data() + shares_[t_.resources[share.resource].place].first_member;
  return std::any_of(first, first + share.members, [&](FlowId id) {
    const Rate rate = given_[t_.flows[id].place].rate;
    return rate > above && rate < below;
  });
}

// Whether the unchanged flows that the resource bounds get their fair share of it.
bool WaterFillingRegion::still_sets(const Share& share, Rate level) {
  const Resource& r = t_.resources[share.resource];
  if (share.left < 0 || share.left >= r.weight || any_member(share, level, unbounded)) return false;
  std::int64_t weight = 0;
  for (std::uint32_t i = r.bound; i != none; i = t_.parts[i].after)
    if (!holds(t_.parts[i].flow)) weight += t_.parts[i].weight;
  return share.left < weight || offer_at(r, level) == level;
}

// Adds flows where bottlenecks tie. Rates are rounded down, so a resource with nothing left may offer no more than what
// slower flows got elsewhere. It is then their bottleneck too, and gives its other flows no more than them. `most`: the
// highest of the rates that it sets; 0: it sets none.
void WaterFillingRegion::join_ties(const Share& share, Rate most) {
  Resource& r = t_.resources[share.resource];
  if (most > 0 && r.fastest <= most - r.weight && !any_member(share, most - r.weight, most)) return;
  t_.each_part(r, [&](const Part& part) { most = std::max(most, rate_now(part.flow)); });
  Rate tied = most;
  t_.each_part(r, [&](const Part& part) {
    const Rate rate = rate_now(part.flow);
    if (rate < tied && rate > most - r.weight && offer_at(r, rate) <= rate) tied = rate;
  });
  if (tied == most) return;
  t_.each_part(r, [&](const Part& part) {
    if (t_.flows[part.flow].rate >= tied) join(part.flow);
  });
}

// The offer to each flow with at least this rate, if slower flows keep theirs.
Rate WaterFillingRegion::offer_at(const Resource& r, Rate rate) const {
  Rate left = r.capacity;
  std::int64_t weight = 0;
  t_.each_part(r, [&](const Part& part) {
    if (const Rate own = rate_now(part.flow); own < rate)
      left -= part.weight * own;
    else
      weight += part.weight;
  });
  return left / weight;
}

// Adds every flow that shares anything with the region.
void WaterFillingRegion::join_all() {
  for (std::size_t next = 0; next < shares_.size(); ++next)
    t_.each_part(t_.resources[shares_[next].resource], [&](const Part& part) { join(part.flow); });
}

void WaterFillingRegion::solve(bool everything) {
  for (int round = 1; !flows_.empty(); ++round) {
    fill();
    if (everything || !widen(round > most_rounds)) return;
  }
}

}  // namespace trellis::sim
