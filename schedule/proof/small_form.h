// A machine of the same form as a large one, small enough that schedules for it are written out and proved.
#pragma once
#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {

// As many dimensions, each at most a few ranks long, and of the same kind (a power of two, another even number, or an
// odd one) as far as 64 ranks allow: 6x4x2 for 48x48x48; the root and the peer at the same coordinates, or at the
// nearest that the small machine has. Throws invalid_argument where the algorithm serves no such machine, and for pairs
// that have no place there.
Request small_form(const Algorithm&, const Request&);

}  // namespace trellis::schedule
