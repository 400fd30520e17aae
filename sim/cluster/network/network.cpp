#include "sim/cluster/network/network.h"

#include "text/refuse.h"

namespace trellis::sim {

Work work_of(double bytes, RateUnit unit) {
  constexpr double most = 1e20;
  if (bytes > most) text::refuse("{:.4g} B to move: expected at most {:g}", bytes, most);
  return static_cast<Work>(bytes) * static_cast<Work>(unit) * static_cast<Work>(second);
}

}  // namespace trellis::sim
