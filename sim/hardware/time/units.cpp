#include "sim/hardware/time/units.h"

#include <fmt/format.h>

#include <stdexcept>

namespace trellis::sim {

void refuse_time(double seconds) {
  throw std::invalid_argument(fmt::format("a time of {:.4g} days: expected at most {:g}", seconds / (24 * 3600),
                                          in_seconds(longest_time) / (24 * 3600)));
}

}  // namespace trellis::sim
