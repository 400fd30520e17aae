// The links that the bytes between two ranks take.
#pragma once

#include <vector>

#include "sim/cluster/machine/machine.h"

namespace trellis::sim {

inline std::vector<ResourceId> route_between(const Machine& m, Rank from, Rank to) {
  std::vector<ResourceId> found;
  m.route(from, to, found);
  return found;
}

}  // namespace trellis::sim
