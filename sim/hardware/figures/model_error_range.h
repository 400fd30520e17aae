// How far published times lie from simulated ones, by kind of answer. The ranges are data, which `trellis validate
// --fit` writes (sim/published/fitted.published).
#pragma once

#include <string_view>

#include "sim/hardware/figures/figures.h"

namespace trellis::sim {

// Factors on a simulated value, for the error of the model itself: low <= 1 <= high.
struct ModelErrorRange {
  double low = 1, high = 1;
};

// The figure error.KIND; {1, 1} if there is none. "kernel", "dma", "coll.device", "coll.host", ...
ModelErrorRange error_range(std::string_view kind);

struct ValueRange {
  double low = 0, high = 0;
};

// Joins a value's range due to uncertain figures with the model's own error: in logarithms, as if independent.
ValueRange widened(double middle, ValueRange by_figures, ModelErrorRange by_model);

}  // namespace trellis::sim
