// The timeline and phases of a traced run. Each rank has rows for software, moving bytes and waiting; each link, HBM
// and DMA engine that was used has a row.
#pragma once

#include <string>
#include <vector>

#include "sim/cluster/price/price.h"
#include "sim/hardware/timeline/timeline.h"

namespace trellis::sim {

struct RunTimelineOptions {
  std::vector<Rank> ranks = {};      // whose rows are wanted; empty: the first ones
  std::size_t most_spans = 400'000;  // approximate; at least one rank is shown
};

struct RunTimeline {
  Timeline timeline;
  std::vector<Rank> shown;
  Rank gone_through = 0;  // ranks that were simulated; those that are not in `shown` are left out
};

// Throws invalid_argument for a wanted rank that was not simulated.
RunTimeline timeline_of(const SimulationRun&, const Machine&, const RunTimelineOptions& = {});

// Transfers that do the same over the same links: "sum over neuronlink x", "copy over efa", "copy within chips".
struct CollectivePhase {
  std::string name;
  Time from = forever, to = 0;  // start of the first transfer, arrival of the last
  Time on_path = 0;             // how much of the critical path it takes
  double bytes = 0;             // of the simulated ranks
  std::int64_t transfers = 0;
};
// In the order in which they begin. `critical`: critical_moves of the same run.
std::vector<CollectivePhase> phases_of(const SimulationRun&, const Machine&, const std::vector<std::int64_t>& critical,
                                       Time end);

}  // namespace trellis::sim
