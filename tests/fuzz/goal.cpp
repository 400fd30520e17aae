// Any text as a GOAL program: refused with invalid_argument, or simulated to its end with the LogGOPS parameters.
#include "sim/cluster/workload/loggopsim_goal.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace trellis::sim;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(is_goal(text));
  try {
    const GoalProgram goal = read_goal("fuzz", text);
    if (goal.ranks.size() > 1024) return 0;
    for (const double end : play_goal(goal, {}))
      if (end < 0) std::abort();
    static_cast<void>(goal_graph(goal));
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
