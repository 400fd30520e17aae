// Zero-bubble schedules (Qi and others, ICLR 2024): the weights' gradients, which nobody waits for, fill what would be
// idle. ZB-H1 has a third of 1F1B's bubble, and on every rank as many micro-batches alive as 1F1B has on its first one:
// a rank that begins later keeps them for the weights' gradients. So later stages hold more than under 1F1B, the last
// one with the head's activations most, and what is recomputed for a backward pass stays until the weights' gradients.
// ZB-V folds two stages a rank into a V: the first rank has the last stage too, so gradients begin where activations
// began.
#include <algorithm>
#include <limits>
#include <map>

#include "train/pipeline/schedule.h"

namespace trellis::train {
namespace {

// 1F1B's order of passes. Rank r lags r micro-batches behind with the weights' gradients, and catches up after its last
// backward pass.
PipelineSchedule h1(const PipelineShape& shape) {
  PipelineSchedule s;
  s.shape = shape, s.split = true;
  const std::int32_t most = shape.micro_batches;
  for (std::int32_t r = 0; r < shape.ranks; ++r) {
    std::vector<Slot>& slots = s.ranks.emplace_back();
    std::int32_t forward = 0, backward = 0, weight = 0;
    const auto next = [&](Action a, std::int32_t& count) { slots.push_back({a, count++, 0}); };
    while (forward < std::min(shape.ranks - r - 1, most)) next(Action::forward, forward);
    while (forward < most) {
      next(Action::forward, forward);
      next(Action::backward, backward);
      if (backward - weight > r) next(Action::weight, weight);
    }
    while (backward < most) {
      next(Action::backward, backward);
      next(Action::weight, weight);
    }
    while (weight < most) next(Action::weight, weight);
  }
  add_messages(s);
  return s;
}

// Fills time unit by unit: a rank takes a backward pass that is ready, else a forward pass while memory allows, the
// later stage's first, else a weight gradient. No rank has more alive than 1F1B's first one.
class Filling {
 public:
  explicit Filling(const PipelineShape& shape) : shape_(shape) {
    out_.shape = shape, out_.split = true, out_.folded = true;
    out_.ranks.resize(static_cast<std::size_t>(shape.ranks));
    live_.assign(out_.ranks.size(), 0);
    const auto places = static_cast<std::size_t>(shape.stages());
    for (auto* list : {&forward_, &backward_, &weight_}) list->resize(places);
  }

  PipelineSchedule run() {
    std::int64_t left = std::int64_t{3} * shape_.stages() * shape_.micro_batches;
    for (std::int64_t now = 0; left > 0; ++now) {
      std::vector<Slot> chosen;
      for (std::int32_t r = 0; r < shape_.ranks; ++r) chosen.push_back(choose(r, now));
      for (std::int32_t r = 0; r < shape_.ranks; ++r)
        if (const Slot& slot = chosen[static_cast<std::size_t>(r)]; slot.micro >= 0) take(r, slot, now), --left;
    }
    return std::move(out_);
  }

 private:
  using Ends = std::vector<std::vector<std::int64_t>>;  // when the passes done so far ended, by stage and micro-batch
  static std::int32_t done(const Ends& ends, std::int32_t stage) {
    return static_cast<std::int32_t>(ends[static_cast<std::size_t>(stage)].size());
  }
  static bool ready(const Ends& ends, std::int32_t stage, std::int32_t micro, std::int64_t now) {
    return micro < done(ends, stage) && ends[static_cast<std::size_t>(stage)][static_cast<std::size_t>(micro)] <= now;
  }

  Slot choose(std::int32_t r, std::int64_t now) const {
    const std::int32_t last = shape_.stages() - 1;
    for (const Action action : {Action::backward, Action::forward, Action::weight})
      for (std::int32_t chunk = shape_.chunks - 1; chunk >= 0; --chunk) {
        const std::int32_t stage = out_.stage_of(r, chunk);
        if (action == Action::backward) {
          const std::int32_t m = done(backward_, stage);
          if (ready(forward_, stage, m, now) && (stage == last || ready(backward_, stage + 1, m, now)))
            return {action, m, chunk};
        } else if (action == Action::forward) {
          const std::int32_t m = done(forward_, stage);
          // The last place in memory is kept for the later stage: else no backward pass could begin and free memory.
          const std::int32_t most = 2 * shape_.ranks - (chunk == 0 ? 1 : 0);
          if (m < shape_.micro_batches && live_[static_cast<std::size_t>(r)] < most &&
              (stage == 0 || ready(forward_, stage - 1, m, now)))
            return {action, m, chunk};
        } else if (const std::int32_t m = done(weight_, stage); m < done(backward_, stage)) {
          return {action, m, chunk};
        }
      }
    return {Action::forward, -1, 0};
  }

  void take(std::int32_t r, const Slot& slot, std::int64_t now) {
    Ends& ends = slot.action == Action::forward ? forward_ : slot.action == Action::backward ? backward_ : weight_;
    ends[static_cast<std::size_t>(out_.stage_of(r, slot.chunk))].push_back(now + 1);
    if (slot.action == Action::forward) ++live_[static_cast<std::size_t>(r)];
    if (slot.action == Action::weight) --live_[static_cast<std::size_t>(r)];
    out_.ranks[static_cast<std::size_t>(r)].push_back(slot);
  }

  PipelineShape shape_;
  PipelineSchedule out_;
  std::vector<std::int32_t> live_;
  Ends forward_, backward_, weight_;
};

PipelineSchedule v(const PipelineShape& shape) {
  PipelineSchedule s = Filling(shape).run();
  add_messages(s);
  return s;
}

const RegisteredPipeline zb_h1({
    .name = "zb-h1",
    .what = "1F1B with the weights' gradients split off",
    .misfit = [](const PipelineShape& s) { return s.chunks == 1 ? "" : "expected one stage a rank"; },
    .make = h1,
});

const RegisteredPipeline zb_v({
    .name = "zb-v",
    .what = "two stages a rank, folded, with the weights' gradients split off",
    .misfit = [](const PipelineShape& s) { return s.chunks == 2 ? "" : "expected two stages a rank"; },
    .make = v,
});

}  // namespace
}  // namespace trellis::train
