// The results of a workload, and HTML for the top of its report: its time and interval, what ranks are busy with, and
// the critical path.
#pragma once

#include <string>

#include "sim/price/interval.h"
#include "sim/workload/play.h"
#include "tools/answer/noise.h"

namespace trellis::tools {

struct PlayAnswer {
  const sim::Workload& workload;
  const sim::Machine& machine;
  const sim::Played& played;
  sim::Interval interval = {};
  Noisy noisy = {};
  std::string interrupted = {};  // what was left out because of Ctrl-C; empty: nothing
};

std::string play_page(const PlayAnswer&);

}  // namespace trellis::tools
