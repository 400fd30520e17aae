// Executes a schedule as unkindly as its rules allow: steps start and end in random order, sends may end before their
// receives begin, sources are read at any moment between, and targets hold rubbish until the step has ended. A schedule
// that comes out right every time is very likely right; one that verify accepts must.
#pragma once
#include <random>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Runs to the end and compares every output with what the collective wants; says what went wrong, if anything.
std::string run_in_chaos(const Schedule&, std::mt19937&);

}  // namespace trellis::schedule
