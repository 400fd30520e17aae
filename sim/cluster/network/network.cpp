#include "sim/cluster/network/network.h"

#include <fmt/format.h>

#include <stdexcept>

namespace trellis::sim {

Work work_of(double bytes, RateUnit unit) {
  constexpr double most = 1e20;
  if (bytes > most) throw std::invalid_argument(fmt::format("{:.4g} B to move: expected at most {:g}", bytes, most));
  return static_cast<Work>(bytes) * static_cast<Work>(unit) * static_cast<Work>(second);
}

}  // namespace trellis::sim
