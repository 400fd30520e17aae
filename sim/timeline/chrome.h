// Writes a timeline in Chrome's trace event format (JSON), which chrome://tracing, Perfetto and others open.
#pragma once

#include <string>

#include "sim/timeline/timeline.h"

namespace trellis::sim {

// Times are microseconds with six decimals, so they are exact. The same timeline gives the same text.
std::string chrome_trace(const Timeline&);

}  // namespace trellis::sim
