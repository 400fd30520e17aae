#include "train/pipeline/forward_then_backward.h"

namespace trellis::train {

PipelineSchedule in_turn(const PipelineSchedule& of, std::int32_t micro_batches) {
  PipelineSchedule s{.name = of.name, .shape = of.shape, .folded = of.folded, .split = of.split};
  s.shape.micro_batches = micro_batches;
  const std::int32_t stages = s.shape.stages();
  for (std::int32_t r = 0; r < s.shape.ranks; ++r) {
    std::vector<Slot>& slots = s.ranks.emplace_back();
    const auto elsewhere = [&](std::int32_t stage) { return stage >= 0 && stage < stages && s.rank_of(stage) != r; };
    for (std::int32_t m = 0; m < micro_batches; ++m)
      for (std::int32_t c = 0; c < s.shape.chunks; ++c) {
        const std::int32_t stage = s.stage_of(r, c);
        if (elsewhere(stage - 1)) slots.push_back({Action::receive_forward, m, c});
        slots.push_back({Action::forward, m, c});
        if (elsewhere(stage + 1)) slots.push_back({Action::send_forward, m, c});
      }
    for (std::int32_t m = 0; m < micro_batches; ++m) {
      for (std::int32_t c = s.shape.chunks - 1; c >= 0; --c) {
        const std::int32_t stage = s.stage_of(r, c);
        if (elsewhere(stage + 1)) slots.push_back({Action::receive_backward, m, c});
        slots.push_back({Action::backward, m, c});
        if (elsewhere(stage - 1)) slots.push_back({Action::send_backward, m, c});
      }
      for (std::int32_t c = s.split ? s.shape.chunks - 1 : -1; c >= 0; --c) slots.push_back({Action::weight, m, c});
    }
  }
  return s;
}

}  // namespace trellis::train
