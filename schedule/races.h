// Two steps of a rank that touch one chunk, one of them writing, must be ordered whatever the timing.
#pragma once
#include "schedule/wiring.h"

namespace trellis::schedule {

// Order counts when it follows from `after` within the rank.
std::optional<Fault> find_race(const Task&, Rank, const Program&);

// It counts too when it follows from data that went through other ranks; that a send has ended is no proof that its
// receive began, since a transport may buffer.
std::optional<Fault> find_race(const Schedule&, Rank, const Wiring&);

}  // namespace trellis::schedule
