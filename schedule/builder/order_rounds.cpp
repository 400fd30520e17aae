#include "schedule/builder/order_rounds.h"

#include <algorithm>
#include <numeric>

namespace trellis::schedule {

void order_rounds(Program& program, std::span<const std::int32_t> rounds) {
  const auto count = static_cast<std::int32_t>(program.steps.size());
  std::vector<std::int32_t> turn(count), order(count), place(count);
  std::iota(order.begin(), order.end(), 0);
  bool moved = false;
  for (std::int32_t first = 0, end = 0; first < count; first = end) {
    while (end < count && rounds[end] == rounds[first]) {
      const Step& step = program.steps[end];
      const bool receiving = receives(step.op);
      turn[end] = receiving ? 1 : 0;
      for (std::int32_t before : program.after(step))
        if (before >= first)
          turn[end] = std::max(turn[end], turn[before] + (receives(program.steps[before].op) && !receiving ? 1 : 0));
      ++end;
    }
    const auto by_turn = [&](std::int32_t a, std::int32_t b) { return turn[a] < turn[b]; };
    if (std::is_sorted(order.begin() + first, order.begin() + end, by_turn)) continue;
    std::stable_sort(order.begin() + first, order.begin() + end, by_turn);
    moved = true;
  }
  if (!moved) return;
  for (std::int32_t i = 0; i < count; ++i) place[order[i]] = i;
  Program ordered{.slices = std::move(program.slices)};
  ordered.steps.reserve(count);
  ordered.befores.reserve(program.befores.size());
  std::vector<std::int32_t> after;
  for (std::int32_t i : order) {
    Step step = program.steps[i];
    after.clear();
    for (std::int32_t before : program.after(step)) after.push_back(place[before]);
    std::ranges::sort(after);
    ordered.set_after(step, after);
    ordered.steps.push_back(step);
  }
  program = std::move(ordered);
}

}  // namespace trellis::schedule
