// Synthesises a schedule for a machine with its dead and slow links. It goes forward in time: whenever a link is idle
// it gets a chunk that its far end still needs, the rarest chunk first.
#pragma once

#include <optional>

#include "schedule/schedule.h"
#include "sim/cluster/tune/sweep.h"

namespace trellis::sim {

struct SynthesisOptions {
  std::int32_t pieces = 1;  // chunks of each rank's share
  // Transfers that one link may have in flight, in the order of the schedule. 0: left to the network.
  std::int32_t depth = 2;
  std::uint64_t seed = 1;  // breaks ties between equally rare chunks
};

// Throws invalid_argument unless the collective is all_gather, reduce_scatter, all_reduce, broadcast or reduce.
void expect_synthesises(schedule::Collective);

// Throws invalid_argument for other collectives, and when there are more transfers than a schedule can hold.
schedule::Schedule synthesised(const Machine&, const RankGroup&, const Pricer::Settings&, double bytes,
                               const SynthesisOptions&);

struct SynthesisResult {
  SynthesisOptions how;
  Time time = 0;
};
std::string text_of(const SynthesisOptions&);  // "synthesised, 4 pieces, 2 at a time"

// Tries several settings and prices them; the fastest first. When stopped it returns what it has.
std::vector<SynthesisResult> syntheses(const Machine&, const RankGroup&, const Pricer::Settings&, double bytes,
                                       const SweepControl&);

}  // namespace trellis::sim
