#include "schedule/proof/dataflow.h"

#include <algorithm>
#include <unordered_map>

namespace trellis::schedule {

Dataflow::Dataflow(const Schedule& schedule, const StepWiring& wiring) : schedule_(schedule), wiring_(wiring) {
  waits_.reserve(wiring.count());
  for (const Program& program : schedule.programs)
    for (const Step& step : program.steps) waits_.push_back(step.after.count + 1);
}

void Dataflow::start(StepId id) {
  const StepId partner = wiring_.partner(id);
  if (partner == StepWiring::none) return ready_.push_back(id);
  const bool receiving = receives(schedule_.programs[wiring_.rank(id)].steps[wiring_.step(id)].op);
  const StepId send = receiving ? partner : id;
  const StepId also = wiring_.second_partner(send);
  if (started(send) && started(wiring_.partner(send)) && (also == StepWiring::none || started(also)))
    ready_.push_back(send);
}

void Dataflow::finish(StepId id) {
  waits_[id] = finished_mark;
  ++finished_;
  for (StepId next : wiring_.lets_go(id))
    if (--waits_[next] == 0) start(next);
}

// An unfinished step that this unfinished step waits for.
StepId Dataflow::blocker(StepId id) const {
  const Rank rank = wiring_.rank(id);
  const Program& program = schedule_.programs[rank];
  const Step& step = program.steps[wiring_.step(id)];
  for (std::int32_t before : program.after(step))
    if (!done(wiring_.id(rank, before))) return wiring_.id(rank, before);
  const StepId partner = wiring_.partner(id);
  if (receives(step.op) && started(partner)) {
    const StepId first = wiring_.partner(partner), second = wiring_.second_partner(partner);
    return first == id ? second : first;
  }
  if (!receives(step.op) && started(partner)) return wiring_.second_partner(id);
  return partner;
}

std::vector<StepId> Dataflow::circle() const {
  const auto stuck = std::ranges::find_if(waits_, [](std::uint32_t w) { return w != finished_mark; });
  if (stuck == waits_.end()) return {};
  std::vector<StepId> walk;
  std::unordered_map<StepId, std::size_t> seen;
  StepId at = static_cast<StepId>(stuck - waits_.begin());
  for (; at != StepWiring::none && !seen.contains(at); at = blocker(at)) {
    seen.emplace(at, walk.size());
    walk.push_back(at);
  }
  if (at != StepWiring::none) walk.erase(walk.begin(), walk.begin() + static_cast<std::ptrdiff_t>(seen.at(at)));
  return walk;
}

}  // namespace trellis::schedule
