// Writes a timeline as a Perfetto trace (protobuf), for ui.perfetto.dev and its trace processor.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/hardware/timeline/timeline.h"

namespace trellis::sim {

// Perfetto counts nanoseconds, so one of its nanoseconds stands for `tick` of simulated time. With a tick of 1 every
// picosecond shows, and 1 us on the page means 1 ns. With a coarser tick, a span with rounded ends has its exact times
// as arguments. Groups become processes, tracks threads, causes arrows. The same timeline gives the same bytes.
// `made_by`, names and values, are the notes of one more event, "made by", at the beginning.
std::string perfetto(const Timeline&, Time tick = ns,
                     const std::vector<std::pair<std::string, std::string>>& made_by = {});

}  // namespace trellis::sim
