// A graph as it is played: its tasks matched, for each group of ranks that does them, in an order in which they can be
// done. The text form of a graph is documented at read_graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/collective.h"
#include "schedule/graph/graph.h"
#include "schedule/schedule.h"
#include "sim/hardware/time/units.h"

namespace trellis::sim {

using schedule::ExecutionGraph;
using schedule::Rank;

// A set of ranks that take part in the same things throughout, so one description holds for all of them.
struct Cell {
  std::vector<Rank> ranks;  // ascending
};

// A task that some ranks do together: a computation, or a collective among them.
struct Part {
  enum class Kind : std::uint8_t { compute, collective } kind = Kind::compute;
  std::string name;
  std::string stream;
  std::vector<std::uint32_t> cells;  // cells that take part
  std::vector<std::uint32_t> after;  // parts that must end first; each comes before this one
  // Compute: `time`, and the work below at the chip's rates. The longest of the three counts.
  Time time = 0;
  std::vector<schedule::ShapedWork> work = {};  // operations; their times add up, and flops and bytes do not count
  double flops = 0;
  double bytes = 0;  // of the collective's larger buffer, or read and written by compute
  schedule::Collective collective = schedule::Collective::all_reduce;
  std::vector<Rank> members = {};  // in the order of the collective's ranks; empty: all
  // Groups each of which does the same by itself, the members first; null: the members alone.
  std::shared_ptr<const std::vector<std::vector<Rank>>> groups = {};
  Rank root = 0, peer = 0;                                  // indices among the members
  std::string algorithm = {};                               // empty: the best
  std::shared_ptr<const schedule::Schedule> schedule = {};  // used instead of an algorithm
};

struct Workload {
  std::string name;
  Rank ranks = 1;
  std::vector<schedule::OperationShape> shapes;
  std::vector<Cell> cells;
  std::vector<Part> parts;  // each comes after those that it waits for
  bool folded = false;      // a cell stands for ranks that do the same in groups of their own
};

// Throws invalid_argument with the fault of a graph that is not proved.
Workload workload_of(const ExecutionGraph&);
// Each class as one cell, and collectives of all groups of a communicator as one part; none where a class's groups
// differ in who is in them, or nothing is gained.
std::optional<Workload> folded_workload_of(const ExecutionGraph&);

// One task a line, words separated by spaces; '#' begins a comment:
//   ranks 16                                  first of all: the number of ranks, here 0 to 15
//   group tp 0-3 4-7 8-11 12-15               a name for groups of ranks, each of which does the same by itself
//   group dp 0-15:4 1-15:4 2-15:4 3-15:4      every fourth; 0,5,7-9 is a group, too
//   compute NAME 120us                        a time; or FLOPs and bytes, at the rates of the machine's chip:
//   compute NAME 1.2TFLOP 300MB
//   operation mm product rows=4096 columns=4096 inner=4096    a name for an operation (sim/cluster/operation), and
//   compute NAME mm*3                         three of it, at the rates of the chip's engines
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

std::string text(const Workload&, const Part&);  // "all_reduce of 64 MB among 4"

}  // namespace trellis::sim
