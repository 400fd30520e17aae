// A plan: a rank's compiled program for a call, and what its messages have in common.
#pragma once

#include "ccl/plan/compiled_program.h"
#include "kernels/types/dtype.h"
#include "schedule/algorithms/algorithm_config.h"

namespace trellis::ccl {

struct SelectedConfig {
  schedule::AlgorithmConfig config;
  bool by_model = false;  // chosen by the model of the host; else by the configuration or the table
};

struct CallPlan {
  const schedule::AlgorithmConfig* config = nullptr;  // lives as long as the planner
  kernels::DType wire = {};                           // type of its messages
  std::uint64_t schedule = 0;                         // a hash: ranks that run different schedules have different ones
  std::uint64_t mark = 0;  // mark_of_call(): equal on ranks that make the same call, whatever its operation number
  CompiledProgram compiled = {};
};

}  // namespace trellis::ccl
