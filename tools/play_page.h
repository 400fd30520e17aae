// What was found out about a workload; and HTML for the top of its report: its time, how sure that is, what the ranks
// are busy with, where the time goes.
#pragma once

#include <string>

#include "sim/interval.h"
#include "sim/workload_play.h"
#include "tools/noise.h"

namespace trellis::tools {

struct PlayAnswer {
  const sim::Workload& workload;
  const sim::Machine& machine;
  const sim::Played& played;
  sim::Interval interval = {};
  Noisy noisy = {};
  std::string interrupted = {};  // what was left out for it; empty: nothing
};

std::string play_page(const PlayAnswer&);

}  // namespace trellis::tools
