// Water filling's state of a resource, and what the resource offers meanwhile to each flow that has no rate yet.
#pragma once

#include <cstdint>

#include "sim/network.h"

namespace trellis::sim {

struct FlowShare {
  std::uint32_t resource = 0;
  Rate left = 0;            // of the capacity
  std::int64_t weight = 0;  // of flows without a rate
  Rate each() const { return left / weight; }
};

struct FlowOffer {
  Rate each = 0;
  std::uint32_t share = 0;  // whose
  bool operator>(const FlowOffer& o) const { return each > o.each; }
};

}  // namespace trellis::sim
