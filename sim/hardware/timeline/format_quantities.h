// Formats quantities for people: three digits and a fitting unit.
#pragma once

#include <string>

#include "sim/hardware/time/units.h"

namespace trellis::sim {

std::string time_words(Time);                 // "12.3 us"
std::string bytes_words(double);              // "1.5 MiB"
std::string rate_words(double);               // "180 GB/s"
std::string flops_words(double);              // "2.1 GFLOP"
std::string percent_words(double share);      // "12.3%"
std::string share_words(Time part, Time of);  // the same; "0.0%" if `of` is 0

}  // namespace trellis::sim
