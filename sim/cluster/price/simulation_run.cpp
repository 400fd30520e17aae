#include "sim/cluster/price/simulation_run.h"

#include <algorithm>

#include "sim/cluster/price/run_engine.h"

namespace trellis::sim {

SimulationRun::SimulationRun(const Machine& machine, std::vector<SimulatedCollective> collectives, RunSettings settings)
    : engine_(std::make_unique<Engine>(machine, std::move(collectives), std::move(settings))) {}

SimulationRun::~SimulationRun() = default;

Time SimulationRun::run() { return engine_->run(); }
Time SimulationRun::ended(std::size_t collective) const { return engine_->ended_[engine_->like_.at(collective)]; }
Time SimulationRun::load_ended(std::size_t load) const { return engine_->loads_ended_[engine_->loads_.at(load).like]; }
const RankFolding* SimulationRun::folding() const { return engine_->folding_.get(); }
Rank SimulationRun::simulated() const { return static_cast<Rank>(engine_->seats_.size()); }
std::int64_t SimulationRun::transfers() const { return engine_->transfers_; }
std::int64_t SimulationRun::events() const { return engine_->events_; }
bool SimulationRun::exact() const { return engine_->network_->exact(); }
const std::vector<MoveTrace>& SimulationRun::traces() const { return engine_->traces_; }

double SimulationRun::carried(ResourceId r) const {
  const Engine& e = *engine_;
  const double byte = static_cast<double>(RateUnit::thousandth) / static_cast<double>(e.unit_);
  if (!e.few_) return e.network_->carried(r) * byte;
  const auto found = e.numbers_.find(e.folding_ ? e.folding_->representative(r) : r);
  return found == e.numbers_.end() ? 0 : e.network_->carried(found->second) * byte;
}

std::optional<std::vector<ResourceId>> SimulationRun::used() const {
  if (!engine_->few_) return {};
  std::vector<ResourceId> all;
  for (const auto& [r, number] : engine_->numbers_) all.push_back(r);
  std::ranges::sort(all);
  return all;
}

SimulationRun::Place SimulationRun::place(std::int64_t number) const {
  const Engine& e = *engine_;
  const auto [at, move] = e.numbered(number);
  const Engine::Seat& seat = e.seats_[at];
  const Move& m = e.program(seat).moves[move];
  const auto rank_of = [&](std::int32_t peer) {
    return peer == no_peer ? -1 : e.peers_[seat.first_peer + static_cast<std::uint32_t>(peer)].rank;
  };
  return {seat.collective, seat.rank, rank_of(m.peer), rank_of(m.second), &m};
}

Time SimulationRun::latency(std::int64_t number) const {
  const Engine& e = *engine_;
  const auto [at, move] = e.numbered(number);
  const Engine::Seat& seat = e.seats_[at];
  const Move& m = e.program(seat).moves[move];
  return m.peer == no_peer ? 0 : e.peers_[seat.first_peer + static_cast<std::uint32_t>(m.peer)].latency;
}

double SimulationRun::bytes(std::int64_t number) const {
  const Engine& e = *engine_;
  const auto [at, move] = e.numbered(number);
  const Engine::Seat& seat = e.seats_[at];
  const Move& m = e.program(seat).moves[move];
  if (e.needs_no_bytes(seat, m)) return 0;
  const SimulatedCollective& collective = e.collectives_[seat.collective];
  const double chunks =
      static_cast<double>(std::max<std::int64_t>(1, schedule::data_chunks(collective.pattern->task())));
  return m.chunks * (collective.chunk_bytes > 0 ? collective.chunk_bytes : collective.bytes / chunks);
}

void SimulationRun::uses(std::int64_t number, std::vector<ResourceId>& found) const {
  const Engine& e = *engine_;
  const Place where = place(number);
  found.clear();
  if (bytes(number) <= 0) return;
  const auto use = [&](ResourceId r) {
    if (r == no_resource) return;
    if (e.folding_) r = e.folding_->representative(r);
    if (std::ranges::find(found, r) == found.end()) found.push_back(r);
  };
  use(e.machine_.hbm(where.rank)), use(e.machine_.dma(where.rank));
  std::vector<ResourceId> way;
  for (Rank to : {where.peer, where.also}) {
    if (to < 0) continue;
    use(e.machine_.hbm(to));
    e.machine_.route(where.rank, to, way);
  }
  if (where.peer >= 0 && where.move->adds) use(e.machine_.dma(where.peer));
  for (ResourceId r : way) use(r);
}

// Of the resources that the move uses, the one that was the busiest in the whole run.
ResourceId SimulationRun::busiest(std::int64_t number) const {
  const Engine& e = *engine_;
  std::vector<ResourceId> used;
  uses(number, used);
  ResourceId found = no_resource;
  double most = 0;
  for (ResourceId r : used) {
    const double load = carried(r) / e.machine_.rate(r);
    if (load > most) most = load, found = r;
  }
  return found;
}

}  // namespace trellis::sim
