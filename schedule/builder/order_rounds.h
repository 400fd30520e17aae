// Sorts the steps within each round, so that programs don't depend on the order in which ranks were visited.
#pragma once
#include "schedule/schedule.h"

namespace trellis::schedule {

// rounds[i] is the round of step i and never decreases. Steps that neither receive nor wait for a
// receive of their round come first.
void order_rounds(Program&, std::span<const std::int32_t> rounds);

}  // namespace trellis::schedule
