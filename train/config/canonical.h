// All that a step depends on, as one text: two configurations with the same text have the same step.
#pragma once

#include <string>

#include "train/config/config.h"

namespace trellis::train {

std::string canonical(const StepConfig&, Rank world);

}  // namespace trellis::train
