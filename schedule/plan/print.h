// A plan as text, one task a line, in the form that `trellis play` reads (sim/workload/workload.h).
#pragma once

#include <string>

#include "schedule/plan/plan.h"

namespace trellis::schedule {

// Shapes, types and tensors have no words there. Throws invalid_argument with the fault of a plan that is not proved.
std::string plan_text(const Plan&);

}  // namespace trellis::schedule
