#include "ccl/timestamp_clock.h"

#include <algorithm>
#include <chrono>

namespace trellis::ccl {

TimestampClock::TimestampClock()
    : first_(now()),
      first_ns_(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count()),
      first_time_(Clock::now()) {}

// The clock's rate is measured from the recorder's start to now. `moment` may be before that start if it is a signal's.
std::int64_t TimestampClock::since_epoch_ns(std::uint64_t moment) const {
  const double passed = std::chrono::duration<double, std::nano>(Clock::now() - first_time_).count();
  const double ticks = static_cast<double>(now() - first_);
  const auto since_first = static_cast<double>(static_cast<std::int64_t>(moment - first_));
  return first_ns_ + static_cast<std::int64_t>(since_first * passed / std::max(ticks, 1.0));
}

}  // namespace trellis::ccl
