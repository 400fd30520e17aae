#include "sim/cluster/workload/exchange_pricer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "sim/cluster/price/simulation_run.h"

namespace trellis::sim {
namespace {

using schedule::GraphTask;

// A step's time is not accurate to a per cent, so any algorithm within this much of the fastest serves.
constexpr double enough = 0.03;
constexpr std::int64_t most_effort = 500'000;

constexpr std::size_t most_groups = 64;  // simulated at once
constexpr std::uint64_t draws = 16;      // of an exchange with noise

}  // namespace

std::optional<ExchangeTimeCache::Known> ExchangeTimeCache::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void ExchangeTimeCache::note(const Key& key, const Known& known) {
  const std::lock_guard lock(mutex_);
  known_.emplace(key, known);
}

ExchangePricer::ExchangePricer(const ExecutionGraph& graph, const schedule::MatchResult& matched,
                               const Machine& machine, const StepOptions& options)
    : graph_(graph),
      matched_(matched),
      machine_(machine),
      options_{.era = options.era, .within = enough, .most_effort = most_effort, .stopped = options.stopped},
      book_(options.book),
      choices_(machine, options_, book_ ? book_->shelves() : nullptr),
      host_(ranks_of_host(machine)) {
  for (std::size_t c = 0; c < graph.communicators.size(); ++c) {
    in_.emplace_back(graph.classes.size(), 0);
    for (std::uint32_t t = 0; t < matched.together[c].size(); ++t)
      for (std::uint32_t of : matched.together[c][t].classes) in_[c][of] = t;
  }
}

const schedule::CommunicatorClasses& ExchangePricer::together(std::uint32_t of, const GraphTask& t) const {
  return matched_.together[t.communicator][in_[t.communicator][of]];
}

std::set<Rank> ExchangePricer::hosts_of(const std::vector<Rank>& members) const {
  std::set<Rank> hosts;
  for (Rank r : members) hosts.insert(r / host_);
  return hosts;
}

std::vector<Rank> ExchangePricer::members_of(std::uint32_t group, const GraphTask& t, const GraphTask& other) const {
  const auto& groups = graph_.communicators[t.communicator].groups;
  std::vector<Rank> members;
  if (groups.empty()) {
    members.resize(static_cast<std::size_t>(graph_.ranks));
    std::iota(members.begin(), members.end(), 0);
  } else {
    members = groups[group];
  }
  if (t.kind == GraphTask::Kind::collective) return members;
  return {members.at(static_cast<std::size_t>(other.operation.peer)),
          members.at(static_cast<std::size_t>(t.operation.peer))};
}

// The groups that exchange at about the same time and share hosts with the group `lead`: `lead` itself, the other
// groups of the task's class, then those of other classes.
ExchangePricer::Beside ExchangePricer::beside(std::uint32_t of, const GraphTask& t, const GraphTask& other,
                                              std::uint32_t lead) const {
  Beside beside{.workload = {.graph = lent(graph_)}, .groups = {}};
  std::vector<std::uint32_t> order = together(of, t).groups;
  std::rotate(order.begin(), std::ranges::find(order, lead), order.end());
  for (const schedule::CommunicatorClasses& set : matched_.together[t.communicator])
    if (&set != &together(of, t)) order.insert(order.end(), set.groups.begin(), set.groups.end());
  Workload& all = beside.workload;
  std::set<Rank> hosts;
  for (std::uint32_t g : order) {
    if (all.parts.size() == most_groups) break;
    const std::vector<Rank> members = members_of(g, t, other);
    if (members.size() < 2) continue;
    if (all.parts.empty()) hosts = hosts_of(members);
    if (std::ranges::none_of(members, [&](Rank r) { return hosts.contains(r / host_); })) continue;
    all.parts.push_back({.task = &t, .cells = {static_cast<std::uint32_t>(all.cells.size())}, .members = members});
    all.cells.push_back({members});
    beside.groups.push_back(g);
  }
  return beside;
}

bool ExchangePricer::have_defects(const std::set<Rank>& hosts) const {
  return std::ranges::any_of(machine_.spec().defects, [&](const Defect& d) {
    return hosts.contains(d.from / host_) || hosts.contains(d.to / host_);
  });
}

// Every group on hosts with a defect is simulated with all that share these hosts, or with as many as are simulated at
// once. The algorithm is chosen once for each set of hosts.
ExchangePrice ExchangePricer::priced(std::uint32_t of, const GraphTask& t, const GraphTask& other) {
  std::set<std::uint32_t> done;
  std::map<std::set<Rank>, std::vector<Rank>> choosers;
  ExchangePrice slowest;
  bool any = false;
  for (const std::uint32_t lead : together(of, t).groups) {
    const std::set<Rank> hosts = hosts_of(members_of(lead, t, other));
    if (any && (done.contains(lead) || !have_defects(hosts))) continue;
    const Beside beside = this->beside(of, t, other, lead);
    const std::vector<WorkloadTask>& parts = beside.workload.parts;
    const std::vector<Rank> first = parts.empty() ? std::vector<Rank>{} : parts.front().members;
    const ExchangePrice one = priced(t, beside.workload, choosers.try_emplace(hosts, first).first->second);
    if (!any || one.together > slowest.together) slowest = one, slowest_[key_of(of, t, other)] = lead;
    if (machine_.spec().defects.empty() || slowest.together == forever) break;
    any = true;
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (std::ranges::includes(hosts, hosts_of(parts[i].members))) done.insert(beside.groups[i]);
  }
  return slowest;
}

ExchangePrice ExchangePricer::priced(const GraphTask& t, const Workload& beside, const std::vector<Rank>& chooser) {
  const bool message = t.kind != GraphTask::Kind::collective;
  ExchangePrice price{.name = message ? "send_recv" : std::string(schedule::name(t.operation.collective)),
                      .algorithm = {},
                      .communicator = t.communicator,
                      .bytes = t.bytes};
  if (beside.parts.empty()) return price;
  const std::vector<Rank>& first = beside.parts.front().members;
  ExchangeTimeCache::Key key{message ? -1 : static_cast<int>(t.operation.collective),
                             t.bytes,
                             t.operation.root,
                             t.algorithm,
                             options_.era,
                             {}};
  if (book_) {
    const Rank base = machine_.spec().defects.empty() ? first.front() / host_ * host_ : 0;
    for (const WorkloadTask& part : beside.parts) {
      std::get<5>(key).push_back(-static_cast<Rank>(part.members.size()));
      for (Rank r : part.members) std::get<5>(key).push_back(r - base);
    }
    if (const auto known = book_->find(key)) {
      price.algorithm = known->algorithm, price.alone = known->alone, price.together = known->together;
      return price;
    }
  }
  const ChosenAlgorithm& chosen = choices_.choose(beside.parts[0], chooser);
  price.alone = price.together = chosen.pattern == nullptr ? forever : chosen.alone;
  if (price.alone == forever) return price;
  price.algorithm = chosen.words;
  if (beside.parts.size() > 1) {  // all begin together, and most ranks can be folded
    std::vector<SimulatedCollective> all;
    for (const WorkloadTask& part : beside.parts)
      all.push_back({.pattern = chosen.pattern.get(),
                     .bytes = t.bytes,
                     .chunk_bytes = chosen.chunk_bytes,
                     .members = part.members});
    price.together = SimulationRun(machine_, std::move(all), {.era = options_.era, .stopped = options_.stopped}).run();
  }
  if (book_ && price.together != forever)
    book_->note(key, {.algorithm = price.algorithm, .alone = price.alone, .together = price.together});
  return price;
}

ExchangePricer::Key ExchangePricer::key_of(std::uint32_t of, const GraphTask& t, const GraphTask& other) const {
  const bool message = t.kind != GraphTask::Kind::collective;
  std::vector<Rank> place = members_of(together(of, t).groups.front(), t, other);
  if (machine_.spec().defects.empty()) {  // hosts are alike
    const Rank first = place.front() / host_ * host_;
    for (Rank& r : place) r -= first;
  }
  return {t.communicator, message ? -1 : static_cast<int>(t.operation.collective),
          t.bytes,        message ? 0 : t.operation.root,
          t.algorithm,    std::move(place)};
}

ExchangePrice& ExchangePricer::price_of(std::uint32_t of, const GraphTask& t, const GraphTask& other) {
  const Key key = key_of(of, t, other);
  auto found = known_.find(key);
  if (found == known_.end()) found = known_.emplace(key, priced(of, t, other)).first;
  return found->second;
}

const std::vector<Time>& ExchangePricer::noisy(std::uint32_t of, const GraphTask& t, const GraphTask& other) {
  const auto [found, fresh] = noisy_.try_emplace(key_of(of, t, other));
  if (!fresh) return found->second;
  const ExchangePrice& usual = price_of(of, t, other);
  if (usual.together == 0 || usual.together == forever) return found->second = {usual.together}, found->second;
  Workload all = beside(of, t, other, slowest_.at(key_of(of, t, other))).workload;
  for (WorkloadTask& part : all.parts)
    if (part.algorithm().empty()) part.chosen = usual.algorithm;
  PlayOptions options = options_;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    options.noise = draw + 1;
    found->second.push_back(play(all, machine_, options).time);
    if (found->second.back() == forever) return found->second = {}, found->second;
  }
  return found->second;
}

void ExchangePricer::begin() {
  for (auto& [key, price] : known_) price.count = 0;
}

std::vector<ExchangePrice> ExchangePricer::prices() const {
  std::vector<ExchangePrice> all;
  for (const auto& [key, price] : known_) all.push_back(price);
  std::ranges::stable_sort(
      all, [](const ExchangePrice& a, const ExchangePrice& b) { return a.together * a.count > b.together * b.count; });
  return all;
}

}  // namespace trellis::sim
