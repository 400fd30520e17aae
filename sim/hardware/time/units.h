// Units of simulated time. Time is an integer number of picoseconds: it adds up exactly and holds 106 days.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace trellis::sim {

using Time = std::int64_t;

inline constexpr Time ns = 1'000, us = 1'000'000, ms = 1'000'000'000, second = 1'000'000'000'000;
inline constexpr Time forever = std::numeric_limits<Time>::max();

// The time that the bytes take at a rate in bytes a second. Rounded up, so that nothing is free.
inline Time transfer_time(double bytes, double bytes_per_second) {
  return static_cast<Time>(std::ceil(bytes / bytes_per_second * 1e12 - 1e-6));
}

inline Time cycles_time(double cycles, double hertz) { return static_cast<Time>(std::llround(cycles / hertz * 1e12)); }

constexpr double in_seconds(Time t) { return static_cast<double>(t) * 1e-12; }
constexpr double in_us(Time t) { return static_cast<double>(t) * 1e-6; }

}  // namespace trellis::sim
