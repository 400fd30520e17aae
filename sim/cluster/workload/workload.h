// A graph as it is played: its tasks matched across ranks, a part for each group of ranks that does one, in topological
// order. The tasks themselves are stored only in the graph. The text form of a graph is documented at read_graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"
#include "schedule/graph/execution_graph.h"
#include "schedule/schedule.h"
#include "sim/hardware/time/units.h"

namespace trellis::sim {

using schedule::ExecutionGraph;
using schedule::Rank;

// A set of ranks that take part in the same things throughout, so one description holds for all of them.
struct EquivalentRanks {
  std::vector<Rank> ranks;  // ascending
};

// A task of the graph as ranks do it together: a cell's computation, or what the members of a group exchange.
struct WorkloadTask {
  const schedule::GraphTask* task = nullptr;  // of the workload's graph; of a message: the sender's
  bool computes = false;                      // the task's kind is compute; kept here, as tasks lie far apart in memory
  std::vector<std::uint32_t> cells = {};      // cells that take part
  std::vector<std::uint32_t> after = {};      // parts that must end first; each comes before this one
  std::vector<Rank> members = {};             // in the order of the collective's ranks; empty: all
  // All groups that do this, each by itself, `members` the first of them; null: only `members` does it.
  std::shared_ptr<const std::vector<std::vector<Rank>>> groups = {};
  std::string chosen = {};                                  // used instead of the task's algorithm, if not empty
  std::shared_ptr<const schedule::Schedule> schedule = {};  // used instead of any algorithm

  const std::string& algorithm() const { return chosen.empty() ? task->algorithm : chosen; }  // empty: the best
  schedule::CollectiveOperation operation() const;  // among the members: a message is a send_recv from 0 to 1
};

struct Workload {
  std::shared_ptr<const ExecutionGraph> graph = {};
  std::vector<EquivalentRanks> cells = {};
  std::vector<WorkloadTask> parts = {};  // each comes after those that it waits for
  bool folded = false;                   // a cell stands for ranks that do the same in groups of their own
};

// Throws invalid_argument, with the fault, for a graph whose tasks do not match across ranks.
Workload workload_of(std::shared_ptr<const ExecutionGraph>);
Workload workload_of(ExecutionGraph);
// The graph with each class as one cell, and each collective as one part for all groups of its communicator. None where
// such groups do not have ranks of the same classes in the same places, or where nothing is gained.
std::optional<Workload> folded_workload_of(std::shared_ptr<const ExecutionGraph>);
// A pointer to the graph that does not own it: the owner keeps the graph for as long as its workload is used.
std::shared_ptr<const ExecutionGraph> lent(const ExecutionGraph&);

// One task a line, words separated by spaces; '#' begins a comment:
//   ranks 16                                  first of all: the number of ranks, here 0 to 15
//   group tp 0-3 4-7 8-11 12-15               a name for groups of ranks, each of which does the same by itself
//   group dp 0-15:4 1-15:4 2-15:4 3-15:4      every fourth; 0,5,7-9 is a group, too
//   compute NAME 120us                        a time; or FLOPs and bytes, at the rates of the machine's chip:
//   compute NAME 1.2TFLOP 300MB
//   operation mm product rows=4096 columns=4096 inner=4096    a name for an operation (sim/cluster/operation), and
//   compute NAME mm*3                         three of it, at the rates of the chip's engines; FLOPs and bytes beside
//                                             them, not a time alone, count instead of them where rates are stated or
//                                             there is no chip
//   all_reduce NAME 64MB on tp by ring        any collective of schedule/; bytes of the larger buffer; by an algorithm
//                                             with as many channels as suit it best, else by the best of all
//   broadcast NAME 1MiB on tp root 2          root and peer count within the group
//   permute NAME 8MB on pp                    each rank of the group sends 8MB to the next one, the last to the first
//   send_recv NAME 8MB from 3 to 7            between these two; from 0-3 to 4-7: from 0 to 4, from 1 to 5, and so on
// All tasks may end with any of: `on GROUP` (a group's name, or ranks; else all ranks take part), `after NAME...`
// (earlier tasks: each rank waits for its own part in them), `stream NAME` (a rank does the tasks of one stream in
// sequence, in the order of the file; the default is `compute` for compute and `comm` for collectives). Throws
// invalid_argument with the line, its fault and what was expected.
ExecutionGraph read_graph(std::string_view name, std::string_view text);

std::string text(const Workload&, const WorkloadTask&);  // "all_reduce of 64 MB among 4"

}  // namespace trellis::sim
