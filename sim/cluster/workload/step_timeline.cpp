#include <fmt/format.h>

#include "schedule/graph/match_exchanges.h"
#include "sim/cluster/workload/step_price.h"

namespace trellis::sim {

// A row for each stream of each class. A task's span names what it waited for.
Timeline timeline_of(const ExecutionGraph& graph, const StepPrice& price) {
  Timeline timeline;
  std::vector<std::vector<std::int64_t>> spans;
  for (std::size_t c = 0; c < graph.classes.size(); ++c) {
    const schedule::RankClass& of = graph.classes[c];
    std::vector<std::int64_t> tracks(graph.streams.size(), -1);
    auto& mine = spans.emplace_back();
    for (std::size_t i = 0; i < of.tasks.size(); ++i) {
      const schedule::GraphTask& t = of.tasks[i];
      if (tracks[t.stream] < 0)
        tracks[t.stream] = timeline.track(schedule::ranks_words(of.ranks), graph.streams[t.stream].name);
      const bool compute = t.kind == schedule::GraphTask::Kind::compute;
      const TaskTiming& when = price.tasks[c][i];
      mine.push_back(timeline.add(
          {.track = static_cast<std::uint32_t>(tracks[t.stream]),
           .label = timeline.label_of(compute ? t.name : fmt::format("{}: {}", t.name, schedule::described(graph, t))),
           .start = when.start,
           .end = when.end,
           .ready = when.start,
           .bytes = t.bytes,
           .flops = t.flops}));
    }
  }
  for (std::size_t c = 0; c < graph.classes.size(); ++c)
    for (std::size_t i = 0; i < spans[c].size(); ++i) {
      const TaskTiming& when = price.tasks[c][i];
      if (when.cause_class < 0) continue;
      Span& span = timeline.spans[static_cast<std::size_t>(spans[c][i])];
      span.cause = spans[static_cast<std::size_t>(when.cause_class)][when.cause];
      if (when.cause_class != static_cast<std::int32_t>(c)) span.wait = WaitReason::peer;
    }
  return timeline;
}

}  // namespace trellis::sim
