// The slots of a schedule without its order.
#pragma once

#include "train/pipeline/schedule.h"

namespace trellis::train {

// All forward passes of a rank, then all backward passes, a micro-batch after the other through all of its stages: what
// slots of the schedule hold can be read off it. Ranks that wait for each other might wait in a circle.
PipelineSchedule in_turn(const PipelineSchedule& of, std::int32_t micro_batches);

}  // namespace trellis::train
