#include "schedule/graph/peak_memory.h"

#include <limits>

namespace trellis::schedule {

PeakMemory peak_memory(const ExecutionGraph& graph, const RankClass& c) {
  constexpr std::uint32_t never = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> first(c.tensors.size(), never);
  // By task: the tensors that it is the first to use, and the tensors that it is the last to use.
  std::vector<std::vector<std::uint32_t>> born(c.tasks.size()), dead(c.tasks.size());
  std::vector<std::uint32_t> last(c.tensors.size(), 0);
  for (std::uint32_t i = 0; i < c.tasks.size(); ++i)
    for (const auto* list : {&c.tasks[i].reads, &c.tasks[i].writes})
      for (std::uint32_t t : *list) {
        if (first[t] == never) first[t] = i, born[i].push_back(t);
        last[t] = i;
      }
  PeakMemory peak;
  std::vector<std::size_t> now(graph.categories.size(), 0);
  std::size_t all = 0;
  const auto change = [&](std::uint32_t t, bool add) {
    const std::size_t bytes = graph.bytes(c.tensors[t]);
    std::size_t& of = now[c.tensors[t].category];
    of = add ? of + bytes : of - bytes, all = add ? all + bytes : all - bytes;
  };
  for (std::uint32_t t = 0; t < c.tensors.size(); ++t) {
    if (graph.categories[c.tensors[t].category].lasting)
      change(t, true);
    else if (first[t] != never)
      dead[last[t]].push_back(t);
  }
  peak = {all, now, 0};
  for (std::uint32_t i = 0; i < c.tasks.size(); ++i) {
    for (std::uint32_t t : born[i])
      if (!graph.categories[c.tensors[t].category].lasting) change(t, true);
    if (all > peak.bytes) peak = {all, now, i};
    for (std::uint32_t t : dead[i]) change(t, false);
  }
  return peak;
}

}  // namespace trellis::schedule
