// Reads schedules that a config names by file, as file:found.schedule: written by a search or by other programs.
#pragma once

#include <string_view>

#include "ccl/plan/selection_table.h"
#include "schedule/schedule.h"

namespace trellis::ccl {

inline bool is_file(const AlgorithmConfig& c) { return c.algorithm.starts_with(schedule::file_prefix); }
// Reads this project's text form or MSCCL's XML. A file that claims to work both in place and out of place is read as
// `in_place` says; any other file itself tells which of them it is for. Throws system_error, and invalid_argument with
// the file's name and the error in it.
schedule::Schedule schedule_from_file(const AlgorithmConfig&, bool in_place);

}  // namespace trellis::ccl
