// How long a graph's exchanges take: each kind of exchange of a communicator is simulated once, in its first group and
// all groups that share hosts with it, at the same time. On a machine with defects also in groups on hosts that have
// one, and the slowest counts.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "schedule/graph/match_exchanges.h"
#include "sim/cluster/workload/algorithm_chooser.h"
#include "sim/cluster/workload/step_price.h"

namespace trellis::sim {

// Keeps the times of exchanges on one machine, by what is exchanged, among whom, and beside whom. Thread-safe.
class ExchangeTimeCache {
 public:
  struct Known {
    std::string algorithm;
    Time alone = 0, together = 0;
  };
  // Collective, bytes, root, algorithm, era; and the ranks of all groups that exchange at once, on a machine without
  // defects counted from the first rank of the first group's host.
  using Key = std::tuple<int, double, Rank, std::string, std::string, std::vector<Rank>>;

  std::optional<Known> find(const Key&) const;
  void note(const Key&, const Known&);
  const std::shared_ptr<ScheduleCaches>& shelves() const { return shelves_; }

 private:
  mutable std::mutex mutex_;
  std::map<Key, Known> known_;
  std::shared_ptr<ScheduleCaches> shelves_ = std::make_shared<ScheduleCaches>();
};

class ExchangePricer {
 public:
  ExchangePricer(const ExecutionGraph&, const schedule::MatchResult&, const Machine&, const StepOptions&);
  ExchangePricer(const ExchangePricer&) = delete;  // choices_ refers to its options
  ExchangePricer& operator=(const ExchangePricer&) = delete;

  // The price of an exchange; `together` is `forever` if it was stopped. `task`: a class's end of the exchange; of a
  // message, the sender's. `other`: the other end; of a collective, the same task.
  ExchangePrice& price_of(std::uint32_t of, const schedule::GraphTask& task, const schedule::GraphTask& other);
  // Times of the exchange with random delays, drawn once. Empty: it was stopped.
  const std::vector<Time>& noisy(std::uint32_t of, const schedule::GraphTask& task, const schedule::GraphTask& other);
  void begin();  // begins another step: sets the counts to 0
  std::vector<ExchangePrice> prices() const;

 private:
  // What is exchanged, of how many bytes, between which ranks of the first group, counted from its first host.
  using Key = std::tuple<std::uint32_t, int, double, Rank, std::string, std::vector<Rank>>;

  using Task = schedule::GraphTask;
  const schedule::CommunicatorClasses& together(std::uint32_t of, const Task&) const;
  Key key_of(std::uint32_t of, const Task&, const Task& other) const;
  // Groups that exchange at the same time, the leading one first.
  struct Beside {
    Workload workload;
    std::vector<std::uint32_t> groups;
  };
  Beside beside(std::uint32_t of, const Task&, const Task& other, std::uint32_t lead) const;
  ExchangePrice priced(std::uint32_t of, const Task&, const Task& other);
  ExchangePrice priced(const Task&, const Workload& beside, const std::vector<Rank>& chooser);
  bool have_defects(const std::set<Rank>& hosts) const;
  std::vector<Rank> members_of(std::uint32_t group, const Task&, const Task& other) const;
  std::set<Rank> hosts_of(const std::vector<Rank>& members) const;

  const ExecutionGraph& graph_;
  const schedule::MatchResult& matched_;
  const Machine& machine_;
  PlayOptions options_;
  std::shared_ptr<ExchangeTimeCache> book_;
  AlgorithmChooser choices_;
  Rank host_;
  std::vector<std::vector<std::uint32_t>> in_;  // by communicator and class: index into MatchResult::together
  std::map<Key, ExchangePrice> known_;
  std::map<Key, std::uint32_t> slowest_;  // the leading group whose exchange was the slowest
  std::map<Key, std::vector<Time>> noisy_;
};

}  // namespace trellis::sim
