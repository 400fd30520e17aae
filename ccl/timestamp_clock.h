// TimestampClock: moments from the CPU's counter, which is cheap to read. Only a dump converts them to nanoseconds.
#pragma once

#include <cstdint>

#include "ccl/errors.h"

namespace trellis::ccl {

class TimestampClock {
 public:
  TimestampClock();
  static std::uint64_t now() {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
#endif
  }
  std::int64_t since_epoch_ns(std::uint64_t moment) const;

 private:
  std::uint64_t first_;
  std::int64_t first_ns_;
  Clock::time_point first_time_;
};

}  // namespace trellis::ccl
