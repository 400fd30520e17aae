// The results of a workload, and HTML for the top of its report: its time and interval, what ranks are busy with, and
// the critical path.
#pragma once

#include <string>

#include "sim/cluster/answer/workload_answer.h"

namespace trellis::tools {

struct WorkloadReport {
  sim::Workload workload = {};
  const sim::Machine& machine;
  sim::WorkloadAnswer answer = {};
};

std::string play_page(const WorkloadReport&);

}  // namespace trellis::tools
