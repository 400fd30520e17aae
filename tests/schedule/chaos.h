// Adversarial execution within a schedule's rules: steps start and end in random order, sends may end before their
// receives begin, sources are read at any moment in between, and targets hold garbage until the step ends. A schedule
// that verify accepts must always give the right result; one that always gives it is very likely right.
#pragma once
#include <random>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Runs to the end and compares every output with the collective's post-condition. Returns what went wrong, or "".
std::string run_in_chaos(const Schedule&, std::mt19937&);

}  // namespace trellis::schedule
