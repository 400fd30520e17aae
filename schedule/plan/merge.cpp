#include "schedule/plan/merge.h"

#include <algorithm>

namespace trellis::schedule {

Plan merged(const Plan& plan) {
  Plan out{.name = plan.name,
           .ranks = plan.ranks,
           .types = plan.types,
           .categories = plan.categories,
           .streams = plan.streams,
           .communicators = plan.communicators};
  for (const RankClass& c : plan.classes) {
    RankClass& to = out.classes.emplace_back(RankClass{.ranks = c.ranks});
    std::vector<std::uint32_t> place;  // of each task, in the new list
    for (const PlanTask& t : c.tasks) {
      const bool compute = t.kind == PlanTask::Kind::compute;
      PlanTask* const last = to.tasks.empty() ? nullptr : &to.tasks.back();
      if (compute && t.after.empty() && last != nullptr && last->kind == PlanTask::Kind::compute &&
          last->stream == t.stream && plan.streams[t.stream].ordered) {
        last->time += t.time, last->flops += t.flops, last->bytes += t.bytes;
      } else {
        PlanTask& added = to.tasks.emplace_back(t);
        added.reads.clear(), added.writes.clear();
        for (std::uint32_t& before : added.after) before = place[before];
      }
      place.push_back(static_cast<std::uint32_t>(to.tasks.size() - 1));
    }
  }
  return out;
}

}  // namespace trellis::schedule
