// A step of many micro-batches, written down in the length of its pipeline's schedule: the first micro-batch, one in
// between and the last are laid out; all others do what the one in between does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/graph/memory.h"
#include "schedule/graph/stretch.h"
#include "train/whole/step.h"

namespace trellis::train {

struct CompactStep {
  schedule::ExecutionGraph graph;  // without tensors
  schedule::Stretches stretches;   // of its tasks: a pass of a micro-batch is one task where no other class takes part
  std::vector<schedule::PeakMemory> memory;  // by class; `task` is the graph's
  MeshShape shape;
  std::size_t micro_batches = 1, laid_out = 1;
  double flops = 0;   // of all ranks: the model's own, recomputation left out
  std::string fault;  // of ranks of a class that do not do the same (check_classes); empty: none, or it was not checked
};

// `check`: whether the classes' other ranks are laid out as well, and held against the first ones.
CompactStep compact_step(const Config&, Rank world, bool check = true);

}  // namespace trellis::train
