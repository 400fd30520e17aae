// Prices a training step class by class: ranks of a class do the same, and the groups of a communicator exchange data
// at the same time, so each class is walked once and each exchange is simulated once. The cost grows with the graph,
// and not with the number of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/graph/repeated_task_stretches.h"
#include "sim/cluster/machine/machine.h"
#include "sim/cluster/workload/play.h"

namespace trellis::sim {

class ExchangeTimeCache;
class CoreProgramTimer;

struct StepOptions {
  std::string era = {};       // of the machine's software, for collectives; empty: the usual one
  std::string software = {};  // the release whose compiler made the step, as 2.21; empty: the newest that is known
  std::function<bool(Time, double)> stopped = {};   // as in RunSettings
  std::shared_ptr<ExchangeTimeCache> book = {};     // exchanges on this machine, shared by steps; null: not shared
  std::shared_ptr<CoreProgramTimer> programs = {};  // times by programs of its chip, where one does; null: formulas
};

// Factors of a whole step, from the model's figures; each is 1 where a machine's figures do not name it.
struct StepFactors {
  double software = 1;                    // of computation's time, for the release
  double hosts = 1;                       // of computation's time, where there is more than one host
  std::map<std::string, double> exposed;  // of the time of exchanges that computation waits for, by communicator
  double spread = 1;                      // the step may take longer or shorter by this factor: the interval
};

struct TaskTiming {
  Time start = 0, end = 0;
  std::int32_t cause_class = -1;  // the class and task whose end it waited for last; -1: none
  std::uint32_t cause = 0;
  std::int32_t stretch = -1;  // the one of schedule::RepeatedTaskStretches that the task stands for; -1: none
};

// Where a class's time goes; the parts add up to the step's time.
struct StepTimeBreakdown {
  std::vector<Time> compute;  // by ExecutionGraph::phases, and last of what has none
  std::vector<Time> exposed;  // by communicator: exchanges that it waits for
  Time idle = 0;              // it waits for other classes, or is done
  std::vector<Time> engines;  // picoseconds of Tensor, Vector, Scalar, memory, were each alone
  Time busy() const;
  void add(const StepTimeBreakdown&);
};

struct ExchangePrice {
  std::string name, algorithm;
  std::uint32_t communicator = 0;
  double bytes = 0;
  Time alone = 0, together = 0;  // the price of one group, and of all that share hosts with it at once
  std::int64_t count = 0;        // in a step, of all classes
};

struct StepPrice {
  Time time = 0;  // forever: it was stopped
  Time low = 0, high = 0;
  StepFactors factors;
  std::vector<StepTimeBreakdown> classes;
  std::vector<std::vector<TaskTiming>> tasks;  // by class
  std::vector<StepTimeBreakdown> stretches;    // by stretch: where the time of one pass goes
  std::vector<ExchangePrice> exchanges;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> path;  // class and task, in order
};

// What a class does by itself: computations, and stretches with their exchanges; not other exchanges or messages.
struct RankClassLocalTime {
  Time all = 0;     // of the whole graph
  Time each = 0;    // one pass of each stretch that is passed more than once: a micro-batch
  Time update = 0;  // the part of `all` in the phase "update"
};

// The time that a class spends in operations of one kind, and the part of it that was found by simulating programs of
// sim/core rather than by formulas.
struct OperationKindTime {
  std::string kind;
  double seconds = 0, by_programs = 0;
};

// A graph on a machine, to be priced with several factors: what does not depend on them is found out once. The graph
// and the machine must outlive it.
class StepPricer {
 public:
  // Throws invalid_argument for a graph whose tasks do not match or that does not fit the machine, or if there is no
  // chip.
  StepPricer(const ExecutionGraph&, const Machine&, const StepOptions& = {}, schedule::RepeatedTaskStretches = {});
  ~StepPricer();
  StepPricer(StepPricer&&) noexcept;

  StepPrice price(const StepFactors&);
  // With random delays of the machine's software: each exchange takes one of several times that were drawn for it.
  StepPrice noisy(const StepFactors&, std::uint64_t seed);
  std::vector<RankClassLocalTime> work(const StepFactors&);                          // by class; empty: it was stopped
  std::vector<OperationKindTime> kinds(const StepFactors&, std::uint32_t of) const;  // of a class, the longest first

 private:
  struct State;
  std::unique_ptr<State> state_;
};

StepPrice price_step(const ExecutionGraph&, const Machine&, const StepOptions& = {});

StepFactors factors_of(const ExecutionGraph&, const Machine&, const StepOptions&);
// The figure of how much of a communicator's exchanges is exposed; empty: the machine has none.
std::string exposed_figure_of(std::string_view communicator, const Machine&);
std::vector<std::string> software_releases(const Machine&);
Rank ranks_of_host(const Machine&);

Timeline timeline_of(const ExecutionGraph&, const StepPrice&);

}  // namespace trellis::sim
