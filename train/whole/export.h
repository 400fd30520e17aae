// A step as a workload in the text form that `trellis play` prices: every rank's computations, collectives and
// messages.
#pragma once

#include <string>
#include <vector>

#include "train/whole/step.h"

namespace trellis::train {

// `stages`: as stages_of gives them. Computations that follow each other are one line: their FLOPs and bytes are added.
// Throws invalid_argument with the fault of a step that is not proved.
std::string workload_text(const std::vector<Step>& stages);

}  // namespace trellis::train
