#include "sim/cluster/price/run_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "kernels/dispatch/available_memory.h"
#include "schedule/schedule_too_large.h"
#include "sim/cluster/network/flow_network.h"
#include "sim/cluster/network/hybrid_flow_network.h"
#include "sim/cluster/network/uncontended_network.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

// Rates computed before a network may be called crowded: a fifth of a second's work. A folded run, which equals the
// unfolded one until then, may spend a second's.
constexpr std::int64_t patience = 500'000, patience_folded = 2'000'000;

// Merges uses of one resource.
void add_use(std::vector<ResourceUse>& uses, std::uint32_t resource, std::uint32_t weight) {
  for (ResourceUse& u : uses)
    if (u.resource == resource) {
      u.weight += weight;
      return;
    }
  uses.push_back({resource, weight});
}

using LoadKey = std::tuple<double, double, Time>;

LoadKey key_of(const HbmLoad& load) { return {load.bytes, load.rate, load.start}; }

}  // namespace

SimulationRun::Engine::Engine(const Machine& machine, std::vector<SimulatedCollective> collectives,
                              RunSettings settings)
    : machine_(machine), collectives_(std::move(collectives)), settings_(std::move(settings)) {
  overheads_ = machine_.overheads(settings_.era);
  static_assert(most_rate <= most_in_bytes);
  unit_ = machine_.fastest() > most_in_thousandths ? RateUnit::byte : RateUnit::thousandth;
  if (auto folded = symmetry()) {
    folding_ = std::make_unique<RankFolding>(machine_, *std::move(folded));
    if (!folding_->folds()) folding_.reset();
  }
  const bool folds = folding_ != nullptr;
  if (!settings_.fold) folding_.reset();
  const bool some = std::ranges::none_of(collectives_, [](const auto& c) { return c.members.empty(); });
  few_ = folding_ != nullptr || (some && settings_.loads.empty());
  if (!few_) {
    capacities_.resize(machine_.resources());
    for (ResourceId r = 0; r < capacities_.size(); ++r) capacities_[r] = rate_of(machine_.rate(r), unit_);
  }
  for (std::uint32_t collective = 0; collective < collectives_.size(); ++collective) {
    add_seats(collective);
    const CompiledSchedule& pattern = *collectives_[collective].pattern;
    const double chunk = collectives_[collective].chunk_bytes;
    const auto chunks = static_cast<Work>(std::max<std::int64_t>(1, schedule::data_chunks(pattern.task())));
    chunk_work_.push_back(chunk > 0 ? work_of(chunk, unit_) : work_of(collectives_[collective].bytes, unit_) / chunks);
  }
  expect_memory(folds);
  for (std::size_t i = 0; i < seats_.size(); ++i) add_peers(seats_[i], own_[i]);
  for (std::uint32_t i = 0; i < collectives_.size(); ++i) {
    const auto& members = collectives_[i].members;
    like_.push_back(folding_ && !members.empty() ? seats_[seat_of(i, members[0])].collective : i);
  }
  first_seat_ = {}, own_ = {}, seat_of_ = {}, kind_ = {};
  for (Seat& seat : seats_) {
    seat.hbm = one_pass(machine_.hbm(seat.rank));
    seat.dma = one_pass(machine_.dma(seat.rank));
  }
  add_loads();
  ended_.assign(collectives_.size(), 0);
  if (settings_.trace) traces_.resize(moves_);
  if (settings_.alone) {
    overheads_.message = overheads_.away = 0;
    network_ = std::make_unique<UncontendedNetwork>(capacities_);
  } else if (settings_.network)
    network_ = settings_.network(capacities_);
  else if (folds && !folding_)
    network_ = std::make_unique<FlowNetwork>(capacities_);  // not allowed to fold: exact, to compare with a folded run
  else
    network_ = std::make_unique<HybridFlowNetwork>(capacities_, folds ? patience_folded : patience);
  capacities_ = {};
}

// The symmetry that all collectives and loads allow together. Equal collectives that begin together are one kind of
// ConcurrentGroups, and so are equal loads.
std::optional<schedule::Symmetry> SimulationRun::Engine::symmetry() {
  if (settings_.noise || collectives_.empty()) return {};
  if (collectives_[0].members.empty() && collectives_.size() == 1 && settings_.loads.empty())
    return folded_symmetry(collectives_[0].pattern->symmetry(), machine_);
  std::map<std::tuple<const CompiledSchedule*, double, double, Time>, std::uint32_t> numbers;
  std::vector<ConcurrentGroups> kinds;
  for (const SimulatedCollective& c : collectives_) {
    if (c.members.empty()) return {};
    const auto [found, fresh] =
        numbers.try_emplace({c.pattern, c.bytes, c.chunk_bytes, c.start}, static_cast<std::uint32_t>(kinds.size()));
    if (fresh) kinds.push_back({.schedule = &c.pattern->symmetry()});
    kinds[found->second].groups.push_back(c.members);
    kind_.push_back(found->second);
  }
  static const schedule::Symmetry by_itself;
  std::map<LoadKey, std::size_t> loads;
  for (const HbmLoad& load : settings_.loads) {
    const auto [found, fresh] = loads.try_emplace(key_of(load), kinds.size());
    if (fresh) kinds.push_back({.schedule = &by_itself});
    kinds[found->second].groups.push_back({load.rank});
  }
  return folded_symmetry(machine_, kinds);
}

// Each simulated load has a resource of its own, which limits its rate.
void SimulationRun::Engine::add_loads() {
  std::map<std::pair<LoadKey, Rank>, std::uint32_t> simulated;
  const double fastest = machine_.fastest();
  for (std::uint32_t i = 0; i < settings_.loads.size(); ++i) {
    const HbmLoad& load = settings_.loads[i];
    if (machine_.hbm(load.rank) == no_resource)
      text::refuse("a load on rank {}: {} has no HBM", load.rank, machine_.name());
    const Rank one = folding_ ? folding_->representative(load.rank) : load.rank;
    const std::uint32_t like = folding_ ? simulated.try_emplace({key_of(load), one}, i).first->second : i;
    loads_.push_back({.hbm = one_pass(machine_.hbm(load.rank)), .like = like});
    if (like != i) continue;
    loads_.back().rate = {static_cast<std::uint32_t>(capacities_.size()), one_use};
    capacities_.push_back(rate_of(std::min(load.rate, fastest), unit_) + 1);
  }
  loads_ended_.assign(loads_.size(), 0);
}

// The network's number of a resource.
std::uint32_t SimulationRun::Engine::number(ResourceId r) {
  if (!few_) return r;
  const ResourceId one = folding_ ? folding_->representative(r) : r;
  const auto [at, fresh] = numbers_.try_emplace(one, static_cast<std::uint32_t>(capacities_.size()));
  if (fresh) capacities_.push_back(rate_of(machine_.rate(one), unit_));
  return at->second;
}

ResourceUse SimulationRun::Engine::one_pass(ResourceId r) {
  if (r == no_resource) return {0, 0};
  return {number(r), one_use * (folding_ ? folding_->sharers(r) : 1)};
}

void SimulationRun::Engine::add_seats(std::uint32_t collective) {
  const CompiledSchedule& pattern = *collectives_[collective].pattern;
  const auto& members = collectives_[collective].members;
  const Rank limit = members.empty() ? pattern.ranks() : static_cast<Rank>(members.size());
  if (limit != pattern.ranks() || (members.empty() && limit > machine_.ranks()))
    text::refuse("a schedule for {} ranks on {}: {} has {}", pattern.ranks(),
                 members.empty() ? "all" : fmt::format("{} members", limit), machine_.name(), machine_.ranks());
  first_seat_.push_back(static_cast<std::uint32_t>(seats_.size()));
  const std::size_t first_row = rows_.size();
  rows_.resize(first_row + pattern.classes().size());
  const auto add = [&](Rank own, Rank at) {
    const auto number = static_cast<std::uint32_t>(seats_.size());
    seats_.push_back({.collective = collective,
                      .program = pattern.class_of(own),
                      .rank = at,
                      .slowness = static_cast<float>(machine_.slowness(at))});
    own_.push_back(own);
    if (folding_) seat_of_.emplace(seat_key(collective, at), number);
    rows_[first_row + seats_.back().program].seats.push_back(number);
  };
  if (folding_ && members.empty()) {
    for (Rank r : folding_->representatives()) add(r, r);
  } else {
    for (Rank i = 0; i < limit; ++i) {
      const Rank at = members.empty() ? i : members[i];
      if (at < 0 || at >= machine_.ranks())
        text::refuse("rank {}: {} has 0 to {}", at, machine_.name(), machine_.ranks() - 1);
      if (!folding_ || folding_->representative(at) == at) add(i, at);
    }
  }
  for (std::size_t i = first_row; i < rows_.size(); ++i) {
    rows_[i].first_move = moves_;
    std::uint64_t index = 0;
    for (std::uint32_t seat : rows_[i].seats) {
      seats_[seat].first_move = moves_ + index++;
      seats_[seat].stride = static_cast<std::uint32_t>(rows_[i].seats.size());
    }
    moves_ += pattern.classes()[i - first_row].moves.size() * rows_[i].seats.size();
  }
}

// Throws if the run needs more memory than there is. This is an estimate: moves are counted from the ranks' programs,
// and all routes of a collective are taken to be as long as the average one from its first rank.
void SimulationRun::Engine::expect_memory(bool folds) const {
  constexpr double no_question = 1 << 28;  // bytes that every host has
  double needed = 0, moves = 0;
  for (std::uint32_t i = 0; i < collectives_.size(); ++i) {
    const std::uint32_t end =
        i + 1 < collectives_.size() ? first_seat_[i + 1] : static_cast<std::uint32_t>(seats_.size());
    if (first_seat_[i] == end) continue;
    const auto& members = collectives_[i].members;
    const Seat& first = seats_[first_seat_[i]];
    std::vector<ResourceId> way;
    for (const Rank named : program(first).peers) {
      const Rank r = collectives_[i].pattern->peer(own_[first_seat_[i]], named);
      machine_.route(first.rank, members.empty() ? r : members[static_cast<std::size_t>(r)], way);
    }
    const double peers = std::max<double>(1, static_cast<double>(program(first).peers.size()));
    const double of_peer = sizeof(Peer) + sizeof(ResourceUse) * static_cast<double>(way.size()) / peers;
    for (std::uint32_t at = first_seat_[i]; at < end; ++at) {
      const RankClassProgram& ours = program(seats_[at]);
      needed += sizeof(Seat) + of_peer * static_cast<double>(ours.peers.size());
      moves += static_cast<double>(ours.moves.size());
    }
  }
  needed +=
      moves * (settings_.trace ? sizeof(MoveTrace) + 1 : 1);  // and a byte that counts what the move still waits for
  if (settings_.most_memory == 0 && needed < no_question) return;
  const double most =
      static_cast<double>(settings_.most_memory > 0 ? settings_.most_memory : kernels::available_memory());
  if (needed <= most) return;
  throw schedule::ScheduleTooLarge(fmt::format(
      "{:.0f} moves of {} simulated ranks need at least {:.3g} GB of memory, and {:.3g} GB are available: try {}fewer "
      "ranks, or an algorithm of fewer messages such as bruck",
      moves, seats_.size(), needed * 1e-9, most * 1e-9, folds && !folding_ ? "it folded, " : ""));
}

void SimulationRun::Engine::add_peers(Seat& seat, Rank own) {
  const CompiledSchedule& pattern = *collectives_[seat.collective].pattern;
  const auto& members = collectives_[seat.collective].members;
  std::vector<ResourceId> way;
  std::vector<ResourceUse> uses;
  seat.first_peer = peers_.size(), seat.first_link = links_.size();
  for (Rank named : program(seat).peers) {
    const Rank r = pattern.peer(own, named), at = members.empty() ? r : members[static_cast<std::size_t>(r)];
    Peer peer{
        .seat = folding_ ? seat_of(seat.collective, at) : first_seat_[seat.collective] + static_cast<std::uint32_t>(r),
        .rank = at,
        .first = static_cast<std::uint32_t>(links_.size() - seat.first_link)};
    way.clear();
    machine_.route(seat.rank, at, way);
    uses.clear();
    for (ResourceId link : way) {
      peer.latency = later(peer.latency, machine_.latency(link));
      peer.away |= machine_.between_hosts(link);
      const ResourceUse use = one_pass(link);
      if (folding_)
        add_use(uses, use.resource, use.weight);
      else
        uses.push_back(use);
    }
    links_.insert(links_.end(), uses.begin(), uses.end());
    peer.count = static_cast<std::uint32_t>(uses.size());
    peers_.push_back(peer);
  }
}

// Each byte that a rank's engines read or write counts against the engines and against the HBM in which it lies. A
// sender's engines read and write. If the data is added to what is there, the receiver's engines read that. Two
// receivers fed by one read pay for it once.
void SimulationRun::Engine::uses_of(const Seat& seat, const Move& m, std::vector<ResourceUse>& uses) const {
  const auto use = [&](const ResourceUse& pass, std::uint32_t touches) {
    if (pass.weight > 0 && touches > 0) add_use(uses, pass.resource, touches * pass.weight);
  };
  if (m.peer == no_peer) {
    const std::uint32_t touches = m.sources + (m.copies_twice ? 2U : 1U);
    use(seat.hbm, touches);
    return use(seat.dma, touches);
  }
  const Peer& peer = peers_[seat.first_peer + static_cast<std::uint32_t>(m.peer)];
  const ResourceUse* links = links_.data() + seat.first_link;
  uses.insert(uses.end(), links + peer.first, links + peer.first + peer.count);
  std::uint32_t writes = 1;
  if (m.second != no_peer) {
    const Peer& also = peers_[seat.first_peer + static_cast<std::uint32_t>(m.second)];
    for (std::uint32_t i = also.first; i < also.first + also.count; ++i)
      add_use(uses, links[i].resource, links[i].weight);
    use(seats_[also.seat].hbm, 1);
    ++writes;
  }
  const std::uint32_t reads = m.summed > 0 ? m.summed : 1;
  use(seat.hbm, reads);
  use(seat.dma, reads + writes);
  if (seat.hbm.weight + seat.dma.weight == 0) return;  // no chip
  const Seat& receiver = seats_[peer.seat];
  use(receiver.hbm, m.adds ? 2 : 1);
  if (m.adds) use(receiver.dma, 1);
}

// Whether the move itself moves no bytes: a source that its sum reads directly on the same chip, a sum that is formed
// while it is sent on, or empty chunks.
bool SimulationRun::Engine::needs_no_bytes(const Seat& seat, const Move& m) const {
  if (m.chunks == 0 || m.forwards) return true;
  return m.staged && m.second == no_peer && machine_.cores() > 1 &&
         peers_[seat.first_peer + static_cast<std::uint32_t>(m.peer)].count == 0;
}

SimulationRun::Engine::SeatMove SimulationRun::Engine::numbered(std::int64_t number) const {
  const auto wanted = static_cast<std::uint64_t>(number);
  const Row& row = *(std::ranges::upper_bound(rows_, wanted, {}, &Row::first_move) - 1);
  const std::uint64_t place = wanted - row.first_move, stride = row.seats.size();
  return {row.seats[place % stride], static_cast<std::uint32_t>(place / stride)};
}

}  // namespace trellis::sim
