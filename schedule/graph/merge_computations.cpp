#include "schedule/graph/merge_computations.h"

#include <algorithm>

namespace trellis::schedule {

namespace {

// Times add up: operations of one task run one after the other.
void add_work(std::vector<RepeatedOperation>& to, const std::vector<RepeatedOperation>& from) {
  for (const RepeatedOperation& w : from) {
    const auto same = std::ranges::find(to, w.shape, &RepeatedOperation::shape);
    if (same == to.end())
      to.push_back(w);
    else
      same->count += w.count;
  }
}

// Work without a shape takes the longer of its arithmetic and memory times, and such maxima cannot be added up.
bool adds_up(const GraphTask& t) { return !t.work.empty() || (t.flops == 0 && t.bytes == 0); }

}  // namespace

ExecutionGraph merged(const ExecutionGraph& graph) {
  ExecutionGraph out{.name = graph.name,
                     .ranks = graph.ranks,
                     .types = graph.types,
                     .categories = graph.categories,
                     .streams = graph.streams,
                     .shapes = graph.shapes,
                     .phases = graph.phases,
                     .communicators = graph.communicators};
  for (const RankClass& c : graph.classes) {
    RankClass& to = out.classes.emplace_back(RankClass{.ranks = c.ranks});
    std::vector<std::uint32_t> place;  // of each task, in the new list
    for (const GraphTask& t : c.tasks) {
      const bool compute = t.kind == GraphTask::Kind::compute;
      GraphTask* const last = to.tasks.empty() ? nullptr : &to.tasks.back();
      if (compute && adds_up(t) && t.after.empty() && last != nullptr && last->kind == GraphTask::Kind::compute &&
          adds_up(*last) && last->stream == t.stream && last->phase == t.phase && graph.streams[t.stream].ordered) {
        add_work(last->work, t.work);
        last->time += t.time, last->flops += t.flops, last->bytes += t.bytes;
      } else {
        GraphTask& added = to.tasks.emplace_back(t);
        added.reads.clear(), added.writes.clear();
        for (std::uint32_t& before : added.after) before = place[before];
      }
      place.push_back(static_cast<std::uint32_t>(to.tasks.size() - 1));
    }
  }
  return out;
}

}  // namespace trellis::schedule
