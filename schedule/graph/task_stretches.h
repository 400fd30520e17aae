// A stretch is a run of a class's tasks that wait only for each other. One task stands for it, so that a stretch that a
// step repeats is stored once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/graph/graph.h"

namespace trellis::schedule {

struct TaskStretches {
  using Tasks = std::shared_ptr<const std::vector<GraphTask>>;
  // The tasks of each stretch. `after` counts from its first task. Tasks beside the main stream end within the stretch.
  std::vector<Tasks> tasks = {};
  std::vector<std::vector<std::int32_t>> stands = {};  // by class and task: the stretch it stands for; -1: for itself

  // -1 where the task stands for itself, or if there are no stretches.
  std::int32_t at(std::uint32_t of, std::uint32_t task) const { return stands.empty() ? -1 : stands[of][task]; }
};

}  // namespace trellis::schedule
