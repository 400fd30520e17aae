// Plays a workload on a machine: computation takes its time, and collectives run as schedules that share the machine
// with all others in flight.
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/cluster/choose/algorithm_choice.h"
#include "sim/cluster/machine/machine.h"
#include "sim/cluster/workload/workload.h"
#include "sim/hardware/timeline/timeline.h"

namespace trellis::sim {

struct PlayOptions {
  std::string era = {};                            // of the machine's software; empty: the usual one
  std::string algorithm = {};                      // of collectives that name none, messages apart; empty: the best
  double flops = 0;                                // a second, of a rank; 0: its chip's tensor engine in bf16
  double memory = 0;                               // bytes a second, of a rank; 0: its part of the chip's HBM
  double element = 4;                              // bytes
  std::optional<std::uint64_t> noise = {};         // as in RunSettings, with a different seed for each collective
  double within = usual_within;                    // as in ChoiceLimits
  std::int64_t most_effort = 0;                    // as in ChoiceLimits; 0: its default
  std::function<bool(Time, double)> stopped = {};  // as in RunSettings, of each run
};

struct PlayedTask {
  Time start = 0, end = 0;
  std::int64_t cause = -1;     // the part whose end it waited for last; -1: none
  std::string algorithm = {};  // the config that was used, as PlayOptions and a workload's `by` take it
};

// How the ranks of one cell (EquivalentRanks) spend their time.
struct PlayedTimeBreakdown {
  Time compute = 0;  // at least one computation runs
  Time comm = 0;     // at least one collective runs
  Time exposed = 0;  // a collective but no computation
  Time idle = 0;     // neither
};

struct PlayResult {
  Time time = 0;  // forever: it was stopped, and nothing else is known
  std::vector<PlayedTask> parts;
  std::vector<PlayedTimeBreakdown> cells;
  std::vector<std::uint32_t> path;  // parts in order, each of which waited for the one before
  Time exposed_most = 0;            // the largest of any rank
  double exposed_mean = 0;          // picoseconds, over ranks
  std::int64_t simulated = 0;       // runs of collectives that were simulated
  int rounds = 0;                   // of simulation, until every collective began when its predecessors had ended
};

// Thrown where ranks of one cell of a folded workload, or groups of one of its parts, take different times on the
// machine. The workload that is not folded can be played instead.
struct FoldedRanksDiffer : std::runtime_error {
  explicit FoldedRanksDiffer(const std::string& what)
      : std::runtime_error(what + ": expected like times of ranks that do the same") {}
};

// A collective begins when all its members have reached it and ends with the last of them. Throws invalid_argument for
// a workload that does not fit the machine, an unsuitable algorithm, or unknown rates. A folded workload takes as long
// as the whole one, to the picosecond, or throws FoldedRanksDiffer.
PlayResult play(const Workload&, const Machine&, const PlayOptions& = {});
PlayResult price(const ExecutionGraph&, const Machine&, const PlayOptions& = {});  // of workload_of(graph)

Timeline timeline_of(const Workload&, const PlayResult&);

}  // namespace trellis::sim
