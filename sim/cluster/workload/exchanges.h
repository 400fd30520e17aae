// How long a graph's exchanges take: each kind of exchange of a communicator is simulated once, all groups that share
// hosts with the first one beside each other.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "schedule/graph/match.h"
#include "sim/cluster/workload/choice.h"
#include "sim/cluster/workload/step_price.h"

namespace trellis::sim {

class Exchanges {
 public:
  Exchanges(const ExecutionGraph&, const schedule::Matched&, const Machine&, const StepOptions&);
  Exchanges(const Exchanges&) = delete;  // choices refer to its options
  Exchanges& operator=(const Exchanges&) = delete;

  // `forever` if it was stopped. The task is one end of what is exchanged; of a message, the sender's.
  Time time_of(schedule::TaskEnd, const schedule::GraphTask& other);
  void learn(const Exchanges&);  // what another graph of the same communicators and machine found out
  void begin();                  // of another step: nothing is counted yet
  std::vector<ExchangePrice> prices() const;

 private:
  // What is exchanged, of how many bytes, between which ranks of the first group, counted from its first host.
  using Key = std::tuple<std::uint32_t, int, double, Rank, std::string, std::vector<Rank>>;

  const schedule::CommunicatorClasses& together(schedule::TaskEnd) const;
  ExchangePrice priced(schedule::TaskEnd, const schedule::GraphTask& other);
  std::vector<Rank> members_of(std::uint32_t group, schedule::TaskEnd, const schedule::GraphTask& other) const;
  bool shares_hosts(const std::vector<Rank>& a, const std::vector<Rank>& b) const;

  const ExecutionGraph& graph_;
  const schedule::Matched& matched_;
  const Machine& machine_;
  PlayOptions options_;
  Choices choices_;
  Rank host_;
  std::vector<std::vector<std::uint32_t>> in_;  // by communicator and class: of Matched::together
  std::map<Key, ExchangePrice> known_;
};

}  // namespace trellis::sim
