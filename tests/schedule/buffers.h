// Executes a schedule on memory as a caller holds it: buffers of words, whose lengths divide by nothing, cut into
// chunks that are equal but for the last; in place, input and output share them. What the buffers must hold at the end
// is worked out anew, from whole buffers and without chunks.
#pragma once
#include <random>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Follows the schedule with the interpreter and says what went wrong, if anything.
std::string run_on_buffers(const Schedule&, std::mt19937&);

}  // namespace trellis::schedule
