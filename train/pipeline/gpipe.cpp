// GPipe: all forward passes, then all backward passes, last micro-batch first. Every activation stays alive.
#include "train/pipeline/schedule.h"

namespace trellis::train {
namespace {

PipelineSchedule make(const PipelineShape& shape) {
  PipelineSchedule s;
  s.shape = shape;
  for (std::int32_t r = 0; r < shape.ranks; ++r) {
    std::vector<Slot>& slots = s.ranks.emplace_back();
    for (std::int32_t m = 0; m < shape.micro_batches; ++m) {
      if (r > 0) slots.push_back({Action::receive_forward, m, 0});
      slots.push_back({Action::forward, m, 0});
      if (r + 1 < shape.ranks) slots.push_back({Action::send_forward, m, 0});
    }
    for (std::int32_t m = shape.micro_batches - 1; m >= 0; --m) {
      if (r + 1 < shape.ranks) slots.push_back({Action::receive_backward, m, 0});
      slots.push_back({Action::backward, m, 0});
      if (r > 0) slots.push_back({Action::send_backward, m, 0});
    }
  }
  return s;
}

const RegisteredPipeline gpipe({
    .name = "gpipe",
    .what = "all forward passes, then all backward passes",
    .misfit = [](const PipelineShape& s) { return s.chunks == 1 ? "" : "expected one stage a rank"; },
    .make = make,
});

}  // namespace
}  // namespace trellis::train
