// Where each tensor of a program lies, and how much memory that takes: known before anything runs.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "train/step/program.h"

namespace trellis::train {

struct MemoryPlan {
  std::vector<std::size_t> offsets;                   // of each tensor, in bytes
  std::size_t bytes = 0;                              // in all
  std::array<std::size_t, category_count> at_peak{};  // by category, when most is alive
  std::size_t peak = 0;                               // their sum; bytes is more where gaps could not be used
  std::size_t peak_operation = 0;                     // the operation at which it is reached
};

// Tensors that last come first. Others take the smallest free gap that holds them, from their first operation to their
// last one.
MemoryPlan plan_memory(const Program&);

}  // namespace trellis::train
