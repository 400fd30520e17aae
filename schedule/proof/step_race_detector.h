// Race detection: two steps of a rank that touch one chunk, one of them writing, must be ordered whatever the timing.
#pragma once
#include "schedule/proof/step_wiring.h"
#include "schedule/proof/work_budget.h"

namespace trellis::schedule {

// Counts only order that follows from `after` within the rank.
std::optional<Fault> find_race(const Task&, Rank, const Program&);

// Also counts order that follows from data that went through other ranks, even against the order of the list. A
// finished send does not prove that its receive began, since a transport may buffer. `moments` says when each step ends
// in some valid run.
class StepRaceDetector {
 public:
  StepRaceDetector(const Schedule&, const StepWiring&, const std::vector<StepId>& moments, WorkBudget&);
  std::optional<Fault> find(Rank);

 private:
  bool before(StepId first, StepId then);  // `first` always ends before `then` starts

  const Schedule& s_;
  const StepWiring& wiring_;
  const std::vector<StepId>& moments_;
  WorkBudget& work_;
  std::vector<std::uint32_t> started_;  // per step: last query in which it starts after `first` ended
  std::uint32_t question_ = 0;
  std::vector<StepId> open_;
};

}  // namespace trellis::schedule
