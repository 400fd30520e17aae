// How much more memory a schedule that splits off weights' gradients holds than 1F1B.
#pragma once

#include <string>
#include <vector>

#include "schedule/graph/execution_graph.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

// A sentence that compares the most that a rank holds, and its stage, with 1F1B of the same model; and, if activations
// are recomputed, one that this saves little. Empty: the schedule does not split, or holds no more. Lays out 1F1B, too.
std::string split_memory(const StepConfig&, Rank world, const std::vector<RankStep>& classes,
                         const schedule::ExecutionGraph&);

// Only split_memory's last sentence: that recomputation saves little with this schedule. Does not lay out the step.
std::string undone_recomputation(const StepConfig&, Rank world);

}  // namespace trellis::train
