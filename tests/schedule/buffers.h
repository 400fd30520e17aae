// Executes schedules on real memory: buffers of words with odd lengths, cut into chunks of equal size except the last.
// In place, input and output overlap. The expected results are computed separately, from whole buffers without chunks.
#pragma once
#include <random>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Runs the schedule with the interpreter. Returns what went wrong, or an empty string.
std::string run_on_buffers(const Schedule&, std::mt19937&);

}  // namespace trellis::schedule
