// Who takes part in a step's exchanges, and what a rank sends in them.
#pragma once

#include "train/whole/rank_step.h"

namespace trellis::train {

// The ranks that an exchange along this axis joins with `rank`.
Group group_of(const RankStep&, Axis, Rank rank);

// Bytes that the step's rank puts on the wire: of reduce_scatter and all_gather a shard for each other member of the
// group, of all_reduce both of these, of a shift all of it, of a pipeline's message all of it at the end that sends.
double bytes_sent(const RankStep&, const Operation&);

}  // namespace trellis::train
