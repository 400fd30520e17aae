// Units of simulated time. Time is an integer number of picoseconds: it adds up exactly and holds 106 days.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace trellis::sim {

using Time = std::int64_t;

inline constexpr Time ns = 1'000, us = 1'000'000, ms = 1'000'000'000, second = 1'000'000'000'000;
inline constexpr Time forever = std::numeric_limits<Time>::max();

// No simulated time is longer: twice as much still fits into a Time, so that two times can be added before the sum is
// checked.
inline constexpr Time longest_time = 50 * 24 * 3600 * second;

[[noreturn]] void refuse_time(double seconds);  // throws invalid_argument with the value

// These throw invalid_argument beyond longest_time.
inline Time time_of_picoseconds(double picoseconds) {
  if (picoseconds > static_cast<double>(longest_time)) refuse_time(picoseconds * 1e-12);
  return static_cast<Time>(picoseconds);
}
inline Time later(Time from, Time time) {
  if (time > longest_time || from + time > longest_time)
    refuse_time((static_cast<double>(from) + static_cast<double>(time)) * 1e-12);
  return from + time;
}

// The time that the bytes take at a rate in bytes a second. Rounded up, so that nothing is free.
inline Time transfer_time(double bytes, double bytes_per_second) {
  return time_of_picoseconds(std::ceil(bytes / bytes_per_second * 1e12 - 1e-6));
}

inline Time cycles_time(double cycles, double hertz) { return time_of_picoseconds(std::round(cycles / hertz * 1e12)); }

constexpr double in_seconds(Time t) { return static_cast<double>(t) * 1e-12; }
constexpr double in_us(Time t) { return static_cast<double>(t) * 1e-6; }

}  // namespace trellis::sim
