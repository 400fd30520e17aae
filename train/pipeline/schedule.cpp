#include "train/pipeline/schedule.h"

#include <algorithm>

#include "text/refuse.h"
#include "text/registry.h"
#include "train/config/plugin_code.h"
#include "train/pipeline/simulate.h"

namespace trellis::train {
namespace {

text::Registry<PipelineRule>& registry() {
  static text::Registry<PipelineRule> all("pipeline schedule");
  return all;
}

}  // namespace

std::string_view name(Action a) {
  constexpr std::string_view names[] = {"forward",         "backward",      "weight",          "send_forward",
                                        "receive_forward", "send_backward", "receive_backward"};
  return names[static_cast<std::size_t>(a)];
}

std::int32_t PipelineSchedule::rank_of(std::int32_t stage) const {
  const std::int32_t at = stage % shape.ranks;
  return folded && chunk_of(stage) % 2 == 1 ? shape.ranks - 1 - at : at;
}

std::int32_t PipelineSchedule::stage_of(std::int32_t rank, std::int32_t chunk) const {
  return chunk * shape.ranks + (folded && chunk % 2 == 1 ? shape.ranks - 1 - rank : rank);
}

RegisteredPipeline::RegisteredPipeline(PipelineRule rule) {
  register_from(__builtin_return_address(0), registry(), std::move(rule));
}
const std::map<std::string, PipelineRule, std::less<>>& pipeline_rules() { return registry().entries(); }

PipelineSchedule pipeline_schedule(std::string_view wanted, const PipelineShape& shape) {
  if (shape.ranks < 1 || shape.chunks < 1 || shape.micro_batches < 1)
    text::refuse("a pipeline of {} ranks, {} stages a rank and {} micro-batches: expected at least 1 each", shape.ranks,
                 shape.chunks, shape.micro_batches);
  const PipelineRule& rule = registry().named(wanted, "pipeline schedule");
  if (const std::string why = rule.misfit(shape); !why.empty()) text::refuse("pipeline schedule {}: {}", wanted, why);
  PipelineSchedule made = rule.make(shape);
  made.name = rule.name;
  return made;
}

void add_messages(PipelineSchedule& s) {
  // The times of computations if messages took no time and waited for nothing.
  const PipelineTiming timing = simulate(s, {}, MessageMode::free);
  struct Dated {
    std::int64_t time;
    bool message;
    Slot slot;
  };
  std::vector<std::vector<Dated>> dated(s.ranks.size());
  for (std::size_t r = 0; r < s.ranks.size(); ++r)
    for (std::size_t i = 0; i < s.ranks[r].size(); ++i) {
      const Slot slot = s.ranks[r][i];
      dated[r].push_back({timing.starts[r][i], false, slot});
      if (slot.action == Action::weight) continue;
      const bool forward = slot.action == Action::forward;
      const std::int32_t stage = s.stage_of(static_cast<std::int32_t>(r), slot.chunk),
                         next = forward ? stage + 1 : stage - 1;
      if (next < 0 || next >= s.shape.stages() || s.rank_of(next) == static_cast<std::int32_t>(r)) continue;
      const std::int64_t end = timing.ends[r][i];
      dated[r].push_back({end, true, {forward ? Action::send_forward : Action::send_backward, slot.micro, slot.chunk}});
      dated[static_cast<std::size_t>(s.rank_of(next))].push_back(
          {end, true, {forward ? Action::receive_forward : Action::receive_backward, slot.micro, s.chunk_of(next)}});
    }
  // Orders a rank's slots by time, messages first. Messages of one time are ordered by the stage that made what they
  // carry, by direction and by micro-batch, so that both ends have them in the same order.
  const auto order = [&](std::size_t rank) {
    return [&s, rank](const Dated& a, const Dated& b) {
      const auto key = [&](const Dated& d) {
        const bool forward = d.slot.action == Action::send_forward || d.slot.action == Action::receive_forward;
        const bool send = d.slot.action == Action::send_forward || d.slot.action == Action::send_backward;
        const std::int32_t here = s.stage_of(static_cast<std::int32_t>(rank), d.slot.chunk);
        const std::int32_t maker = send ? here : forward ? here - 1 : here + 1;
        return std::tuple(d.time, !d.message, d.message ? maker : 0, d.message ? !forward : false,
                          d.message ? d.slot.micro : 0);
      };
      return key(a) < key(b);
    };
  };
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    std::ranges::stable_sort(dated[r], order(r));
    s.ranks[r].clear();
    for (const Dated& d : dated[r]) s.ranks[r].push_back(d.slot);
  }
}

}  // namespace trellis::train
