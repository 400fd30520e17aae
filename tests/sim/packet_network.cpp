#include "tests/sim/packet_network.h"

#include <algorithm>
#include <cassert>

namespace trellis::sim {
namespace {

// Packets that a flow may have in flight beyond one for each hop: enough to keep every resource of its route busy.
constexpr std::uint32_t spare_packets = 2;

}  // namespace

PacketNetwork::PacketNetwork(std::vector<Rate> capacities, double packet_bytes)
    : packet_(static_cast<Work>(packet_bytes) * work_of_byte) {
  assert(packet_ > 0);
  resources_.resize(capacities.size());
  for (std::size_t i = 0; i < capacities.size(); ++i) resources_[i].capacity = capacities[i];
  carried_.assign(capacities.size(), 0);
}

void PacketNetwork::start(std::span<const ResourceUse> uses, Work work, std::uint64_t tag) {
  auto id = static_cast<std::uint32_t>(flows_.size());
  if (free_.empty()) {
    flows_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Flow& f = flows_[id];
  f = {};
  for (const ResourceUse& u : uses) {
    f.hops.push_back({.use = u});
    carried_[u.resource] += static_cast<double>(work) / static_cast<double>(work_of_byte) * u.weight / one_use;
  }
  f.packets = static_cast<std::uint32_t>((work + packet_ - 1) / packet_);
  f.last = work - packet_ * (f.packets - 1);
  f.tag = tag;
  fresh_.push_back(id);
}

void PacketNetwork::settle() {
  for (std::uint32_t id : fresh_) feed(id);
  fresh_.clear();
}

void PacketNetwork::feed(std::uint32_t id) {
  Flow& f = flows_[id];
  const auto most = static_cast<std::uint32_t>(f.hops.size()) + spare_packets;
  while (f.begun < f.packets && f.begun - f.hops.back().passed < most) {
    ++f.begun;
    arrive({id, 0});
  }
}

void PacketNetwork::arrive(Turn turn) {
  Hop& hop = flows_[turn.flow].hops[turn.hop];
  ++hop.waiting;
  if (hop.listed) return;
  hop.listed = true;
  resources_[hop.use.resource].turns.push_back(turn);
  serve(hop.use.resource);
}

Time PacketNetwork::service(const Hop& hop, Work work) const {
  const Work speed = static_cast<Work>(resources_[hop.use.resource].capacity) * one_use;
  return static_cast<Time>((work * hop.use.weight + speed - 1) / speed);
}

// Cut-through: the next resource may begin once it has so much of the packet that the rest arrives in time.
void PacketNetwork::serve(std::uint32_t number) {
  Resource& r = resources_[number];
  if (r.busy || r.turns.empty()) return;
  const Turn turn = r.turns.front();
  r.turns.pop_front();
  Flow& f = flows_[turn.flow];
  Hop& hop = f.hops[turn.hop];
  const Work work = ++hop.served == f.packets ? f.last : packet_;
  if (--hop.waiting > 0)
    r.turns.push_back(turn);
  else
    hop.listed = false;
  r.busy = true;
  r.current = turn;
  const Time time = service(hop, work);
  served_.push(now_ + time, number);
  if (turn.hop + 1 == f.hops.size()) return;
  const Time lead = time - service(f.hops[turn.hop + 1], work);
  heads_.push(now_ + std::max<Time>(lead, 0), {turn.flow, turn.hop + 1});
}

bool PacketNetwork::pass(Turn turn) {
  Flow& f = flows_[turn.flow];
  ++f.hops[turn.hop].passed;
  if (turn.hop + 1 < f.hops.size()) return false;
  feed(turn.flow);
  return f.hops[turn.hop].passed == f.packets;
}

void PacketNetwork::advance(Time to, std::vector<std::uint64_t>& ended) {
  now_ = to;
  while (served_.next() == to) {
    served_.pop(row_);
    for (std::uint32_t number : row_) {
      resources_[number].busy = false;
      const Turn turn = resources_[number].current;
      if (pass(turn)) {
        ended.push_back(flows_[turn.flow].tag);
        free_.push_back(turn.flow);
      }
    }
    for (std::uint32_t number : row_) serve(number);
  }
  while (heads_.next() == to) {
    heads_.pop(turns_);
    for (const Turn& turn : turns_) arrive(turn);
  }
}

}  // namespace trellis::sim
