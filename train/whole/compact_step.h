// The graph of a step of many micro-batches, with no more tasks than its pipeline's schedule needs: the first
// micro-batch, one in between and the last are laid out; all others do what the one in between does.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "schedule/graph/peak_memory.h"
#include "schedule/graph/repeated_task_stretches.h"
#include "train/whole/memory_replay.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

// The memory of a rank that has one stage.
struct StageBytes {
  std::int64_t lasting = 0;    // through the whole step
  std::int64_t optimizer = 0;  // of that, what ZeRO-1 shares out
  std::int64_t input = 0;      // of that, for each micro-batch that is neither the first nor the last
  std::map<Action, std::array<MemoryDelta, 3>> slots = {};  // of the first micro-batch, one in between, the last
};

struct CompactStep {
  schedule::ExecutionGraph graph;  // without tensors
  schedule::RepeatedTaskStretches
      stretches;  // of its tasks: a micro-batch's pass is one task if no other class takes part
  std::vector<schedule::PeakMemory> memory;  // by class; `task` is the graph's
  MeshShape shape;
  std::size_t micro_batches = 1, laid_out = 1;
  std::vector<StageBytes> stages;  // by class, if each rank has one stage
  double flops = 0;                // of all ranks: the model's own, recomputation left out
  std::string fault;  // of ranks of a class that do not do the same (check_classes); empty: none, or it was not checked
};

// `check`: whether the classes' other ranks are laid out as well, and compared with the first ones.
CompactStep compact_step(const StepConfig&, Rank world, bool check = true);

}  // namespace trellis::train
