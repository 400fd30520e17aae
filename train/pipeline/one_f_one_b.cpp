// 1F1B: after a warm-up of min(P - r - 1, M) forward passes, rank r alternates. Before a backward pass it first
// receives the gradient and only then sends the last forward pass's result: the other order would have neighbours wait
// for each other.
#include <algorithm>

#include "train/pipeline/schedule.h"

namespace trellis::train {
namespace {

PipelineSchedule make(const PipelineShape& shape) {
  PipelineSchedule s;
  s.shape = shape;
  const std::int32_t most = shape.micro_batches;
  for (std::int32_t r = 0; r < shape.ranks; ++r) {
    std::vector<Slot>& slots = s.ranks.emplace_back();
    const bool first = r == 0, last = r + 1 == shape.ranks;
    const std::int32_t warm = std::min(shape.ranks - r - 1, most);
    const auto forward = [&](std::int32_t m) {
      if (!first) slots.push_back({Action::receive_forward, m, 0});
      slots.push_back({Action::forward, m, 0});
    };
    const auto send = [&](std::int32_t m) {
      if (!last) slots.push_back({Action::send_forward, m, 0});
    };
    const auto receive = [&](std::int32_t m) {
      if (!last) slots.push_back({Action::receive_backward, m, 0});
    };
    const auto backward = [&](std::int32_t m) {
      slots.push_back({Action::backward, m, 0});
      if (!first) slots.push_back({Action::send_backward, m, 0});
    };
    for (std::int32_t m = 0; m < warm; ++m) forward(m), send(m);
    for (std::int32_t m = 0; m < most - warm; ++m) forward(warm + m), receive(m), send(warm + m), backward(m);
    for (std::int32_t m = most - warm; m < most; ++m) receive(m), backward(m);
  }
  return s;
}

const RegisteredPipeline one_f_one_b({
    .name = "1f1b",
    .what = "one forward and one backward pass in turn",
    .misfit =
        [](const PipelineShape& s) { return s.chunks == 1 ? "" : "expected one stage a rank; interleaved takes more"; },
    .make = make,
});

}  // namespace
}  // namespace trellis::train
