// How much more memory a schedule that splits off weights' gradients holds than 1F1B.
#pragma once

#include <string>
#include <vector>

#include "schedule/graph/graph.h"
#include "train/whole/step.h"

namespace trellis::train {

// A sentence with the most that a rank holds, and where, beside 1F1B's of the same model; and that recomputation is
// undone where it is. Empty: the schedule does not split, or holds no more. Lays the step out once more.
std::string split_memory(const StepConfig&, Rank world, const std::vector<RankStep>& classes,
                         const schedule::ExecutionGraph&);

// The part of it that needs no layout: recomputation is undone.
std::string undone_recomputation(const StepConfig&, Rank world);

}  // namespace trellis::train
