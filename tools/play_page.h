// HTML for the top of a workload's report: its time, how sure that is, what the ranks are busy with, where the time
// goes.
#pragma once

#include <string>

#include "sim/interval.h"
#include "sim/workload_play.h"

namespace trellis::tools {

std::string play_page(const sim::Workload&, const sim::Machine&, const sim::Played&, const sim::Interval&);

}  // namespace trellis::tools
