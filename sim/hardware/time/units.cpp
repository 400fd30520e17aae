#include "sim/hardware/time/units.h"

#include <fmt/format.h>

#include "sim/hardware/time/time_too_long.h"

namespace trellis::sim {

void refuse_time(double seconds) {
  throw TimeTooLong(fmt::format("a time of {:.4g} days: expected at most {:g}", seconds / (24 * 3600),
                                in_seconds(longest_time) / (24 * 3600)));
}

}  // namespace trellis::sim
