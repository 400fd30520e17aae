// Makes a schedule for a machine as it is, dead and slow links and all: over time, whenever a link is idle, a chunk
// that its far end still needs is put on it, that one first which fewest have.
#pragma once

#include <optional>

#include "schedule/schedule.h"
#include "sim/sweep.h"
#include "sim/tuner.h"

namespace trellis::sim {

struct Synthesis {
  std::int32_t pieces = 1;  // chunks of each rank's share
  // Transfers that one link may have under way: the order in which it has them is the schedule's; 0: the network's
  std::int32_t depth = 2;
  std::uint64_t seed = 1;  // between chunks that are alike
};

// Throws invalid_argument but for all_gather, reduce_scatter, all_reduce, broadcast, reduce.
void expect_synthesises(schedule::Collective);

// Throws invalid_argument for other collectives, and for more transfers than a schedule takes.
schedule::Schedule synthesised(const Machine&, const Group&, const Pricer::Settings&, double bytes, const Synthesis&);

struct Synthesised {
  Synthesis how;
  Time time = 0;
};
std::string text_of(const Synthesis&);  // "synthesised, 4 pieces, 2 at a time"

// Several, priced: the fastest first. What it has when it is stopped.
std::vector<Synthesised> syntheses(const Machine&, const Group&, const Pricer::Settings&, double bytes,
                                   const SweepControl&);

}  // namespace trellis::sim
