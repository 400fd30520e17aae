// Measures one collective on a number of ranks of this host, and makes rules of a selection table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ccl/plan/selection_table.h"
#include "measure/settings.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/progress.h"

namespace trellis::tools {

// The ranks' settings: the environment's timeout, but not its algorithm.
measure::BenchSettings settings_for(schedule::Collective);

struct MeasuredRules {
  std::string gain;  // what they gain over what the library selects today, as a comment of the table
  std::vector<ccl::SelectionRule> rules;
};

// Measures on ranks that are processes. When the user interrupts, the rules are those of the sizes that are done, or
// none.
MeasuredRules measured_rules(schedule::Collective, ccl::Rank ranks, kernels::DType,
                             const std::vector<std::uint64_t>& sizes, Progress&, const InterruptPoller&);

}  // namespace trellis::tools
