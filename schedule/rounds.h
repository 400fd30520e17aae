// Lists the steps of each round in an order that does not tell in which order the ranks were gone through.
#pragma once
#include "schedule/schedule.h"

namespace trellis::schedule {

// rounds[i] is the round of step i, never falling. What does not receive comes first, unless it waits for what does.
void order_rounds(Program&, std::span<const std::int32_t> rounds);

}  // namespace trellis::schedule
