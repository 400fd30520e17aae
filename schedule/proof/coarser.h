// Merges chunks to make verification cheaper. If every run of chunks begins and ends at a multiple of a grain, then
// that many chunks act as one, and a proof for the merged chunk holds for each of them.
#pragma once
#include "schedule/schedule.h"

namespace trellis::schedule {

std::int32_t grain_of(const Schedule&);  // the largest grain; the program's lists must hold all that its steps refer to
Schedule coarser(const Schedule&, std::int32_t grain);

}  // namespace trellis::schedule
