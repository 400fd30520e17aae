// Checks each step by itself: its chunks exist, may be written, match in size, and do not partly overlap.
#pragma once
#include "schedule/proof/step_wiring.h"

namespace trellis::schedule {

std::optional<Fault> find_misfit(const Task&, int channels, Rank, const Program&);  // within one rank's steps
std::optional<Fault> find_unequal_ends(const Schedule&, const StepWiring&);         // between the two ends of transfers

}  // namespace trellis::schedule
