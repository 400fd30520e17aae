// Puts a schedule's slots into another order: all forward passes, then all backward passes.
#pragma once

#include "train/pipeline/schedule.h"

namespace trellis::train {

// All forward passes of a rank, then all its backward passes, one micro-batch after the other through all of its
// stages. The order serves to lay out slots and to count what each holds. It must not be run: ranks might wait for each
// other in a circle.
PipelineSchedule in_turn(const PipelineSchedule& of, std::int32_t micro_batches);

}  // namespace trellis::train
