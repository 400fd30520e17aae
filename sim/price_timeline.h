// What a traced run did when: a row for each rank's software, its bytes on their way and its waiting, a row for each
// link, HBM and DMA engine that was used; and the phases of it.
#pragma once

#include <string>
#include <vector>

#include "sim/price.h"
#include "sim/timeline.h"

namespace trellis::sim {

struct SeenOptions {
  std::vector<Rank> ranks = {};      // whose rows are wanted; none: of the first ones
  std::size_t most_spans = 400'000;  // about; at least one rank is shown
};

struct Seen {
  Timeline timeline;
  std::vector<Rank> shown;
  Rank gone_through = 0;  // ranks that were simulated; more than were shown: the others are left out
};

// Throws invalid_argument for a rank that is wanted and was not gone through.
Seen timeline_of(const Run&, const Machine&, const SeenOptions& = {});

// Transfers that do the same over the same links: "sum over neuronlink x", "copy over efa", "copy within chips".
struct Phase {
  std::string name;
  Time from = forever, to = 0;  // the first begins, the last has arrived
  Time on_path = 0;             // how much of the critical path
  double bytes = 0;             // by those gone through
  std::int64_t transfers = 0;
};
// In the order in which they begin. `critical`: of the same run.
std::vector<Phase> phases_of(const Run&, const Machine&, const std::vector<std::int64_t>& critical, Time end);

}  // namespace trellis::sim
