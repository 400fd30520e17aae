#include "tools/schedule/schedule_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/proof/step_wiring.h"

namespace trellis::tools {

using schedule::Program;
using schedule::Rank;
using schedule::Schedule;
using schedule::Step;
using schedule::StepId;
using schedule::StepWiring;

std::optional<StepRounds> step_rounds(const Schedule& s, const StepWiring& wiring) {
  StepRounds result{.round = std::vector<std::int32_t>(wiring.count())};
  const auto ready = [&](StepId id) {
    const Rank rank = wiring.rank(id);
    const Program& program = s.programs[rank];
    std::int32_t latest = 0;
    for (std::int32_t before : program.after(program.steps[wiring.step(id)]))
      latest = std::max(latest, result.round[wiring.id(rank, before)]);
    return latest;
  };
  const auto local = [&](StepId id) { result.round[id] = ready(id); };
  const auto transfer = [&](StepId send, StepId receive) {
    const StepId also = wiring.second_partner(send);
    // A send with two ends is visited once for each end. It happens once all three steps have started.
    if (receive == also) return;
    std::int32_t round = std::max(ready(send), ready(receive));
    if (also != StepWiring::none) round = std::max(round, ready(also));
    result.round[send] = result.round[receive] = ++round;
    if (also != StepWiring::none) result.round[also] = round;
    result.rounds = std::max(result.rounds, round);
  };
  if (!schedule::DataflowExecutor(s, wiring).run(local, transfer)) return {};
  return result;
}

void MinMax::count(std::int64_t n, bool first) {
  least = first ? n : std::min(least, n);
  most = first ? n : std::max(most, n);
}

std::string MinMax::text() const {
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

void count_sent(const Program& program, std::int64_t& messages, std::int64_t& chunks) {
  for (const Step& step : program.steps) {
    if (!sends(step.op)) continue;
    const int ends = step.second.peer >= 0 ? 2 : 1;
    messages += ends;
    chunks += std::int64_t{ends} * step.from.count;
  }
}

ScheduleSummary summary(const Schedule& s) {
  ScheduleSummary found{.ranks = s.ranks(), .steps = s.steps()};
  for (std::size_t r = 0; r < s.programs.size(); ++r) {
    std::int64_t messages = 0, chunks = 0;
    count_sent(s.programs[r], messages, chunks);
    found.transfers += messages;
    found.messages.count(messages, r == 0);
    found.chunks.count(chunks, r == 0);
    found.scratch.count(s.programs[r].scratch, r == 0);
  }
  StepWiring wiring;
  if (StepWiring::connect(s, wiring)) return found;
  if (const auto followed = step_rounds(s, wiring)) found.rounds = followed->rounds;
  return found;
}

}  // namespace trellis::tools
