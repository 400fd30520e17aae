// Rewrites a schedule without changing its meaning: the transfers from one rank to another on one channel exchange
// their tags at random, and steps are listed in any order that their waits allow. A correct schedule stays correct.
#pragma once
#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <tuple>

#include "schedule/schedule.h"

namespace trellis::schedule {

inline Program relisted_at_random(const Program& program, std::mt19937& random) {
  const std::size_t count = program.steps.size();
  std::vector<std::int32_t> order, numbers(count), open;
  std::vector<std::uint32_t> waits(count);
  for (std::size_t i = 0; i < count; ++i) {
    waits[i] = program.steps[i].after.count;
    if (waits[i] == 0) open.push_back(static_cast<std::int32_t>(i));
  }
  while (!open.empty()) {
    std::swap(open[random() % open.size()], open.back());
    const std::int32_t next = open.back();
    open.pop_back();
    numbers[next] = static_cast<std::int32_t>(order.size());
    order.push_back(next);
    for (std::size_t i = 0; i < count; ++i)
      for (const std::int32_t before : program.after(program.steps[i]))
        if (before == next && --waits[i] == 0) open.push_back(static_cast<std::int32_t>(i));
  }
  Program out{.scratch = program.scratch, .scratch_sizes = program.scratch_sizes};
  for (const std::int32_t i : order) {
    Step step = program.steps[i];
    std::vector<std::int32_t> after;
    for (const std::int32_t before : program.after(step)) after.push_back(numbers[before]);
    out.set_further(step, program.further(step));
    out.set_after(step, after);
    out.steps.push_back(step);
  }
  return out;
}

inline void renumber_at_random(Schedule& s, std::mt19937& random) {
  using Lane = std::tuple<Rank, Rank, std::uint8_t>;
  std::map<Lane, std::vector<std::int32_t>> tags;
  for (Rank r = 0; r < s.ranks(); ++r)
    for (const Step& step : s.programs[r].steps)
      if (receives(step.op)) tags[{step.end.peer, r, step.channel}].push_back(0);
  for (auto& [lane, list] : tags) {
    std::iota(list.begin(), list.end(), 0);
    std::shuffle(list.begin(), list.end(), random);
  }
  for (Rank r = 0; r < s.ranks(); ++r)
    for (Step& step : s.programs[r].steps) {
      const auto give = [&](End& end, Rank from, Rank to) { end.tag = tags.at({from, to, step.channel})[end.tag]; };
      if (receives(step.op)) give(step.end, step.end.peer, r);
      if (!sends(step.op)) continue;
      give(step.end, r, step.end.peer);
      if (step.second.peer >= 0) give(step.second, r, step.second.peer);
    }
}

inline Schedule scrambled(const Schedule& s, std::mt19937& random) {
  Schedule out = s;
  renumber_at_random(out, random);
  for (Program& program : out.programs) program = relisted_at_random(program, random);
  return out;
}

}  // namespace trellis::schedule
