// Where each tensor of a program lies, and how much memory that takes: known before anything runs. How much each
// category takes is computed from the step's graph (schedule/graph/peak_memory.h).
#pragma once

#include <cstddef>
#include <vector>

#include "train/step/program.h"

namespace trellis::train {

struct MemoryPlan {
  std::vector<std::size_t> offsets;  // of each tensor, in bytes
  std::size_t bytes = 0;             // in all; more than the most that is alive at once, if gaps could not be used
};

// Whether parameters have their place here, or in another program's memory.
enum class ParameterStorage : std::uint8_t { here, parameters_elsewhere };

// Tensors that are kept from step to step come first. Each other one takes the smallest free gap that holds it, from
// its first operation to its last one.
MemoryPlan plan_memory(const StepProgram&, ParameterStorage = ParameterStorage::here);

}  // namespace trellis::train
