// The rules that each step must keep by itself: its chunks exist, may be written, fit each other in size, and do not
// overlap half-way.
#pragma once
#include "schedule/wiring.h"

namespace trellis::schedule {

std::optional<Fault> find_misfit(const Task&, int channels, Rank, const Program&);  // within one rank's steps
std::optional<Fault> find_unequal_ends(const Schedule&, const Wiring&);             // between the ends of transfers

}  // namespace trellis::schedule
