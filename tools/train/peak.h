// What a rank of a machine could do at most, of which MFU is a part.
#pragma once

#include <string>

#include "train/config/config.h"

namespace trellis::tools {

// The peak of a rank's tensor engines, in products of the precision's type. Throws invalid_argument for a machine
// that is not known, or has no chip.
double peak_tflops(const std::string& machine, train::Precision);

}  // namespace trellis::tools
