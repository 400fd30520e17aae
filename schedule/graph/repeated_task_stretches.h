// A stretch is a run of tasks that wait only for each other. In its class's list, one task stands for it, so that a
// stretch that occurs many times in a step is stored once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/graph/execution_graph.h"

namespace trellis::schedule {

struct RepeatedTaskStretches {
  using Tasks = std::shared_ptr<const std::vector<GraphTask>>;
  // The tasks of each stretch, whose `after` counts from its first task. Those on other streams than the main one end
  // within the stretch.
  std::vector<Tasks> tasks = {};
  std::vector<std::vector<std::int32_t>> stands = {};  // by class and task: the stretch it stands for; -1: for itself

  // The stretch that a task stands for. -1: it stands for itself, as all tasks do if there are no stretches.
  std::int32_t at(std::uint32_t of, std::uint32_t task) const { return stands.empty() ? -1 : stands[of][task]; }
};

}  // namespace trellis::schedule
