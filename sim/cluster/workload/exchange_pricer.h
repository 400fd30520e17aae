// How long a graph's exchanges take. Each kind of exchange of a communicator is simulated once: in its first group
// together with the groups that share hosts with it, as these exchange at the same time. On a machine with defects, it
// is also simulated in groups on hosts that have a defect, and the slowest time counts.
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

// Caches the times of exchanges on one machine, by what is exchanged, among which ranks, and by which other groups
// exchange at the same time. Thread-safe.
class ExchangeTimeCache {
 public:
  struct Known {
    std::string algorithm;
    Time alone = 0, together = 0;
  };
  // Collective, bytes, root, algorithm, era; and the ranks of all groups that exchange at once. On a machine without
  // defects, these are counted from the first rank of the first group's host.
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

  // The price of an exchange; `together` is `forever` if it was stopped. `task`: the exchange as the class `of` has it;
  // of a message, the send. `other`: of a message, the receive; not used for a collective.
  ExchangePrice& price_of(std::uint32_t of, const schedule::GraphTask& task, const schedule::GraphTask& other);
  // Times of the exchange with random delays, drawn once. Empty: it was stopped.
  const std::vector<Time>& noisy(std::uint32_t of, const schedule::GraphTask& task, const schedule::GraphTask& other);
  void begin();  // begins another step: sets the counts to 0
  std::vector<ExchangePrice> prices() const;

 private:
  // Communicator, collective (-1: a message), bytes, root, algorithm; and the ranks of the first group, on a machine
  // without defects counted from the first rank of its host.
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
