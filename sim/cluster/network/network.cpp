#include "sim/cluster/network/network.h"

#include <fmt/format.h>

#include <stdexcept>

namespace trellis::sim {

Work work_of(double bytes) {
  constexpr double most = 1e20;
  if (bytes > most) throw std::invalid_argument(fmt::format("{:.4g} B to move: expected at most {:g}", bytes, most));
  return static_cast<Work>(bytes) * work_of_byte;
}

}  // namespace trellis::sim
