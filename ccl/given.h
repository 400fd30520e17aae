// Schedules that a choice names by their file, as in file:found.schedule: as made by a search, or by others.
#pragma once

#include <string_view>

#include "ccl/selector.h"
#include "schedule/schedule.h"

namespace trellis::ccl {

inline bool is_file(const Choice& c) { return c.algorithm.starts_with(schedule::file_way); }
// Our text, or MSCCL's XML. Throws system_error, and invalid_argument with the file's name and what is wrong in it.
schedule::Schedule given_schedule(const Choice&);

}  // namespace trellis::ccl
