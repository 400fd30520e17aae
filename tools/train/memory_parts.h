// What a rank's memory is for at its peak, as columns that add up to all of it.
#pragma once

#include <array>

#include "schedule/graph/peak_memory.h"

namespace trellis::tools {

// Each with the bytes of one or several train::Category. Activations are with their inputs, what is computed aside, and
// attention_pairs().
inline constexpr std::array memory_part_names = {"weights", "gradients", "optimizer", "activations"};

std::array<double, memory_part_names.size()> memory_parts(const schedule::PeakMemory&);  // in bytes

// Of that, what attention without flash holds: arrays of all pairs of queries and keys.
double attention_pairs(const schedule::PeakMemory&);

}  // namespace trellis::tools
