// A timeline as a Perfetto trace (protobuf), for ui.perfetto.dev and its trace processor.
#pragma once

#include <string>

#include "sim/timeline.h"

namespace trellis::sim {

// Perfetto counts nanoseconds: a trace's nanosecond stands for `tick` of simulated time. With a tick of 1 every
// picosecond is seen, and the page's "1 us" is 1 ns; with coarser ticks a span whose ends were rounded carries them
// exactly as arguments. Groups are processes, tracks threads, causes arrows; the same timeline gives the same bytes.
std::string perfetto(const Timeline&, Time tick = ns);

}  // namespace trellis::sim
