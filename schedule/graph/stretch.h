// Tasks of a class that wait for nobody but each other, as one task: what a step repeats is written down once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "schedule/graph/graph.h"

namespace trellis::schedule {

struct Stretches {
  using Tasks = std::shared_ptr<const std::vector<GraphTask>>;
  // Of each stretch. `after` counts from its first task, and what runs beside the main stream has ended at its end.
  std::vector<Tasks> tasks = {};
  std::vector<std::vector<std::int32_t>> stands = {};  // by class and task: the stretch it stands for; -1: for itself

  // -1 where the task stands for itself, or there are none.
  std::int32_t at(std::uint32_t of, std::uint32_t task) const { return stands.empty() ? -1 : stands[of][task]; }
};

}  // namespace trellis::schedule
