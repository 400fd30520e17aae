#include "schedule/graph/merge.h"

#include <algorithm>

namespace trellis::schedule {

ExecutionGraph merged(const ExecutionGraph& graph) {
  ExecutionGraph out{.name = graph.name,
                     .ranks = graph.ranks,
                     .types = graph.types,
                     .categories = graph.categories,
                     .streams = graph.streams,
                     .communicators = graph.communicators};
  for (const RankClass& c : graph.classes) {
    RankClass& to = out.classes.emplace_back(RankClass{.ranks = c.ranks});
    std::vector<std::uint32_t> place;  // of each task, in the new list
    for (const GraphTask& t : c.tasks) {
      const bool compute = t.kind == GraphTask::Kind::compute;
      GraphTask* const last = to.tasks.empty() ? nullptr : &to.tasks.back();
      if (compute && t.after.empty() && last != nullptr && last->kind == GraphTask::Kind::compute &&
          last->stream == t.stream && graph.streams[t.stream].ordered) {
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
