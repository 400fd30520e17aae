// A hash of the messages of a schedule: who sends which values to whom. Schedules that differ only in what a rank does
// by itself, such as where its buffers are, have the same. It is taken after a schedule has been adapted to the
// transport's lanes, since that may change the order of messages between two ranks.
#pragma once

#include <cstdint>

#include "schedule/schedule.h"

namespace trellis::ccl {

// Throws invalid_argument if the schedule can't run to its end.
std::uint64_t message_hash(const schedule::Schedule&);

}  // namespace trellis::ccl
