#include "sim/cluster/network/approximate_flow_network.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace trellis::sim {
namespace {

constexpr double byte_work = 1e15;

std::uint64_t key(std::uint32_t on, std::uint32_t by) { return std::uint64_t{by} << 32 | on; }

}  // namespace

ApproximateFlowNetwork::ApproximateFlowNetwork(std::vector<Rate> capacities, Time now)
    : resources_(capacities.size()), now_(now) {
  for (std::size_t i = 0; i < capacities.size(); ++i) resources_[i].capacity = capacities[i] * one_use;
  carried_.assign(capacities.size(), 0);
}

// The rate that a new flow may get from this resource. The resource with the lowest such guess sets its rate at first.
Rate ApproximateFlowNetwork::first_guess(const Part& part) const {
  const Resource& r = resources_[part.resource];
  return r.weight > 0 ? r.level : std::max<Rate>((r.capacity - r.used) / part.weight, 1);
}

void ApproximateFlowNetwork::start(std::span<const ResourceUse> uses, Work work, std::uint64_t tag) {
  for (const ResourceUse& use : uses)
    carried_[use.resource] += static_cast<double>(work) / (byte_work * one_use) * use.weight;
  go_on(uses, work, tag);
}

void ApproximateFlowNetwork::go_on(std::span<const ResourceUse> uses, Work left, std::uint64_t tag) {
  assert(!uses.empty());
  const FlowId id = free_flows_.take();
  if (id == flows_.size()) flows_.emplace_back();
  Flow& f = flows_[id];
  f.tag = tag;
  f.parts.clear();
  for (const ResourceUse& use : uses) f.parts.push_back({use.resource, use.weight});
  bind(id, std::ranges::min_element(f.parts, {}, [&](const Part& p) { return first_guess(p); })->resource, left);
  check(f);
}

void ApproximateFlowNetwork::catch_up(Resource& r) {
  r.got += static_cast<Work>(r.level) * static_cast<Work>(now_ - r.since);
  r.since = now_;
}

ApproximateFlowNetwork::PairId ApproximateFlowNetwork::pair(ResourceId on, ResourceId by) {
  const auto [found, fresh] = numbers_.try_emplace(key(on, by));
  if (!fresh) return found->second;
  const PairId id = found->second = free_pairs_.take();
  if (id == pairs_.size()) pairs_.emplace_back();
  Resource &r = resources_[on], &setter = resources_[by];
  pairs_[id] = {on, by, 0, static_cast<std::uint32_t>(r.takes.size()), static_cast<std::uint32_t>(setter.gives.size())};
  r.takes.push_back(id);
  setter.gives.push_back(id);
  r.fastest = std::max(r.fastest, setter.level);
  return id;
}

void ApproximateFlowNetwork::count(PairId id, std::int64_t weight) {
  Pair& p = pairs_[id];
  resources_[p.on].used += weight * resources_[p.by].level;
  if ((p.weight += weight) == 0) drop(id);
}

void ApproximateFlowNetwork::drop(PairId id) {
  const Pair p = pairs_[id];
  auto &takes = resources_[p.on].takes, &gives = resources_[p.by].gives;
  pairs_[takes[p.in_takes] = takes.back()].in_takes = p.in_takes;
  takes.pop_back();
  pairs_[gives[p.in_gives] = gives.back()].in_gives = p.in_gives;
  gives.pop_back();
  numbers_.erase(key(p.on, p.by));
  free_pairs_.give_back(id);
}

void ApproximateFlowNetwork::bind(FlowId id, ResourceId by, Work left) {
  Flow& f = flows_[id];
  Resource& r = resources_[by];
  catch_up(r);
  for (const Part& part : f.parts)
    if (part.resource == by) {
      if (r.level == 0) r.level = first_guess(part);
      r.weight += part.weight;
    }
  ++r.count;
  f.by = by, f.until = r.got + left, ++f.turns;
  r.members.push_back({f.until, id, f.turns});
  std::ranges::push_heap(r.members, std::less<>());
  for (Part& part : f.parts) {
    part.pair = part.resource == by ? none : pair(part.resource, by);
    if (part.pair != none) count(part.pair, part.weight);
  }
  touch(by);
}

void ApproximateFlowNetwork::unbind(FlowId id) {
  Flow& f = flows_[id];
  Resource& r = resources_[f.by];
  ++f.turns, --r.count;
  for (const Part& part : f.parts) {
    if (part.pair == none)
      r.weight -= part.weight;
    else
      count(part.pair, -std::int64_t{part.weight});
  }
  touch(f.by);
  if (r.count == 0) {
    catch_up(r);
    r.level = 0;
    r.members.clear();
  }
  constexpr std::size_t few = 64;
  if (r.members.size() < few || r.members.size() / 4 < r.count) return;
  std::erase_if(r.members, [&](const Member& m) { return gone(m); });
  std::ranges::make_heap(r.members, std::less<>());
}

void ApproximateFlowNetwork::touch(ResourceId id) {
  if (resources_[id].touched) return;
  resources_[id].touched = true;
  touched_.push_back(id);
}

void ApproximateFlowNetwork::check(const Flow& f) {
  for (const Part& part : f.parts) check(part.resource);
}

// Queues a resource whose level is no longer right, or that has no level and needs one.
void ApproximateFlowNetwork::check(ResourceId id) {
  Resource& r = resources_[id];
  if (r.waits) return;
  if (r.weight == 0) {
    if (r.used <= r.capacity + slack(r.capacity)) return;
  } else {
    const Rate own = r.level * r.weight, left = r.capacity - r.used - own;
    if (left <= slack(own) && -left <= slack(own) && r.fastest <= r.level + slack(r.level)) return;
  }
  r.waits = true;
  waiting_.emplace_back(r.weight == 0 ? 0 : r.level, id);
  std::ranges::push_heap(waiting_, std::greater<>());
}

void ApproximateFlowNetwork::set_level(ResourceId id, Rate level) {
  Resource& r = resources_[id];
  catch_up(r);
  const Rate more = level - r.level;
  r.level = level;
  touch(id);
  if (more == 0) return;
  for (const PairId p : r.gives) {
    const Pair& given = pairs_[p];
    Resource& other = resources_[given.on];
    other.used += given.weight * more;
    other.fastest = std::max(other.fastest, level);
    check(given.on);
  }
}

// Sets the level to what remains for each flow that no other resource holds to a lower rate. Takes over flows to which
// another resource gives a higher rate.
void ApproximateFlowNetwork::share(ResourceId id) {
  Resource& r = resources_[id];
  r.waits = false;
  Rate left = r.capacity - r.used;
  std::int64_t weight = r.weight;
  const auto enough = [&](Rate theirs) {
    return weight > 0 ? left / weight + slack(left / weight) >= theirs : left + slack(r.capacity) >= 0;
  };
  faster_.clear();
  if (!enough(r.fastest)) find_faster(r, weight > 0 ? left / weight : 0);
  std::size_t over = 0;
  for (; over < faster_.size() && !enough(faster_[over].level); ++over) {
    left += faster_[over].weight * faster_[over].level;
    weight += faster_[over].weight;
  }
  if (over < faster_.size()) r.fastest = faster_[over].level;
  if (weight == 0) return;
  set_level(id, std::max<Rate>(left / weight, 1));
  for (std::size_t i = 0; i < over; ++i) take_over(id, faster_[i].by);
}

// Lists, the fastest first, the other resources that give flows of this one more than `level`. `fastest` becomes the
// highest rate that the rest of them give.
void ApproximateFlowNetwork::find_faster(Resource& r, Rate level) {
  r.fastest = 0;
  for (const PairId p : r.takes) {
    const Faster one{resources_[pairs_[p].by].level, pairs_[p].by, pairs_[p].weight};
    if (one.level > level)
      faster_.push_back(one);
    else
      r.fastest = std::max(r.fastest, one.level);
  }
  std::ranges::sort(
      faster_, [](const Faster& a, const Faster& b) { return a.level != b.level ? a.level > b.level : a.by < b.by; });
}

void ApproximateFlowNetwork::take_over(ResourceId id, ResourceId from) {
  Resource& giver = resources_[from];
  catch_up(giver);
  moving_over_.clear();
  for (const Member& m : giver.members) {
    const auto on_it = [&](const Part& part) { return part.resource == id; };
    if (!gone(m) && std::ranges::any_of(flows_[m.flow].parts, on_it)) moving_over_.push_back(m.flow);
  }
  for (const FlowId flow : moving_over_) {
    const Work left = flows_[flow].until > giver.got ? flows_[flow].until - giver.got : 0;
    unbind(flow);
    bind(flow, id, left);
  }
  for (const FlowId flow : moving_over_) check(flows_[flow]);
}

// Drops stale members from the top of the heap. Returns false if the heap is empty then.
bool ApproximateFlowNetwork::drop_gone(Resource& r) {
  while (!r.members.empty() && gone(r.members.front())) {
    std::ranges::pop_heap(r.members, std::less<>());
    r.members.pop_back();
  }
  return !r.members.empty();
}

// Queues the time at which the first of the resource's flows ends, unless an earlier entry is queued: once that one is
// due, the end is queued again.
void ApproximateFlowNetwork::note_end(ResourceId id) {
  Resource& r = resources_[id];
  r.touched = false;
  if (!drop_gone(r)) return;
  const Work until = r.members.front().until;
  const Time end = later(r.since, until > r.got ? time_of(until - r.got, r.level) : 0);
  if (end >= r.noted) return;
  r.noted = end;
  ends_.push(end, id);
}

// Levels settle from the lowest up. If they converge slowly, ever larger changes are dropped.
void ApproximateFlowNetwork::settle() {
  std::size_t shared = 0;
  for (; !waiting_.empty(); ++shared) {
    const ResourceId id = waiting_.front().second;
    std::ranges::pop_heap(waiting_, std::greater<>());
    waiting_.pop_back();
    share(id);
    constexpr std::size_t rounds = 16;
    if (shared % (rounds * resources_.size()) == rounds * resources_.size() - 1) fineness_ = std::max(fineness_ - 1, 1);
  }
  fineness_ = finest;
  for (const ResourceId id : touched_) note_end(id);
  touched_.clear();
}

void ApproximateFlowNetwork::advance(Time to, std::vector<std::uint64_t>& ended) {
  assert(to >= now_ && to <= next());
  now_ = to;
  while (ends_.next() == to) {
    ends_.pop(row_);
    sorter_.sort(row_);
    for (const ResourceId id : row_) {
      Resource& r = resources_[id];
      if (r.noted != to) continue;
      r.noted = forever;
      catch_up(r);
      touch(id);
      while (drop_gone(r) && r.members.front().until <= r.got) {
        const FlowId flow = r.members.front().flow;
        ended.push_back(flows_[flow].tag);
        unbind(flow);
        check(flows_[flow]);
        flows_[flow].by = none;
        free_flows_.give_back(flow);
      }
    }
  }
}

Rate ApproximateFlowNetwork::rate(std::uint64_t tag) const {
  for (const Flow& f : flows_)
    if (f.by != none && f.tag == tag) return resources_[f.by].level;
  return 0;
}

}  // namespace trellis::sim
