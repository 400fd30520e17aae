// The algorithms of a hierarchy's levels where the caller names none.
#pragma once

#include "schedule/collective.h"

namespace trellis::schedule {

// Between hosts a ring, where it serves the collective, as it moves the least; elsewhere one step to all. Between few
// ranks a ring's steps can take longer than its fewer bytes save.
inline const char* usual_level(Collective c, bool last) {
  using enum Collective;
  const bool ring_serves = c == all_reduce || c == reduce_scatter || c == all_gather || c == broadcast || c == reduce ||
                           c == all_gather_v || c == reduce_scatter_v;
  return last && ring_serves ? "ring" : "direct";
}

}  // namespace trellis::schedule
