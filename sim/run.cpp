#include "sim/run.h"

#include <limits>

#include "sim/run_engine.h"

namespace trellis::sim {

Run::Run(const Machine& machine, std::vector<Job> jobs, RunSettings settings)
    : engine_(std::make_unique<Engine>(machine, std::move(jobs), std::move(settings))) {}

Run::~Run() = default;

Time Run::run() { return engine_->run(); }
Time Run::ended(std::size_t job) const { return engine_->ended_.at(job); }
const Folding* Run::folding() const { return engine_->folding_.get(); }
Rank Run::simulated() const { return static_cast<Rank>(engine_->seats_.size()); }
std::int64_t Run::transfers() const { return engine_->transfers_; }
std::int64_t Run::events() const { return engine_->events_; }
const std::vector<Trace>& Run::traces() const { return engine_->traces_; }

double Run::carried(ResourceId r) const {
  const Engine& e = *engine_;
  if (!e.folding_) return e.network_->carried(r);
  const auto found = e.folded_.find(e.folding_->representative(r));
  return found == e.folded_.end() ? 0 : e.network_->carried(found->second);
}

Run::Place Run::place(std::int64_t number) const {
  const Engine& e = *engine_;
  const auto [at, move] = e.numbered(number);
  const Engine::Seat& seat = e.seats_[at];
  const Move& m = e.program(seat).moves[move];
  const auto peer = m.peer == no_peer ? -1 : e.peers_[seat.first_peer + static_cast<std::uint32_t>(m.peer)].rank;
  return {seat.job, seat.rank, peer, &m};
}

Time Run::latency(std::int64_t number) const {
  const Engine& e = *engine_;
  const auto [at, move] = e.numbered(number);
  const Engine::Seat& seat = e.seats_[at];
  const Move& m = e.program(seat).moves[move];
  return m.peer == no_peer ? 0 : e.peers_[seat.first_peer + static_cast<std::uint32_t>(m.peer)].latency;
}

// Where a byte takes longest.
ResourceId Run::narrowest(std::int64_t number) const {
  const Engine& e = *engine_;
  const Place where = place(number);
  std::vector<ResourceId> used{e.machine_.hbm(where.rank), e.machine_.dma(where.rank)};
  if (where.peer >= 0) {
    used.push_back(e.machine_.hbm(where.peer));
    if (where.move->adds) used.push_back(e.machine_.dma(where.peer));
    e.machine_.route(where.rank, where.peer, used);
  }
  ResourceId found = no_resource;
  double most = 0;
  for (ResourceId r : used) {
    if (r == no_resource) continue;
    const double load = carried(r) / e.machine_.rate(r);
    if (load > most) most = load, found = r;
  }
  return found;
}

}  // namespace trellis::sim
