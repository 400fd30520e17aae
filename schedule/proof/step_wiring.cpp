#include "schedule/proof/step_wiring.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <unordered_map>

namespace trellis::schedule {
namespace {

std::string describe(const Slice& s) {
  if (s.count == 1) return fmt::format("{}[{}]", name(s.buffer), s.first);
  return fmt::format("{}[{}..{}]", name(s.buffer), s.first, std::int64_t{s.first} + s.count - 1);
}

// Identifies a transfer for its receiver.
struct Arrival {
  Rank peer;
  std::int32_t tag;
  std::uint8_t channel;
  StepId step;
  auto key() const { return std::tuple(peer, channel, tag); }
};

bool within(const Range& part, std::size_t list) { return std::uint64_t{part.first} + part.count <= list; }

std::string describe_end(const Step& s, const End& end) {
  return fmt::format("transfer {} with rank {} on channel {}", end.tag, end.peer, s.channel);
}

}  // namespace

std::string describe(const Program& program, const Step& step) {
  std::string text{name(step.op)};
  if (writes(step.op)) text += fmt::format(" {}", describe(step.to));
  if (reads(step.op)) text += fmt::format("{}{}", writes(step.op) ? " = " : " ", describe(step.from));
  constexpr std::size_t most = 8;  // limit for readability
  const auto further = program.further(step);
  for (const Slice& more : further.first(std::min(most, further.size())))
    text += fmt::format("{}{}", step.op == Op::reduce ? " + " : " and to ", describe(more));
  if (further.size() > most) text += fmt::format(" and {} more", further.size() - most);
  if (sends(step.op)) text += fmt::format(" to {}", step.end.peer);
  if (sends(step.op) && step.second.peer >= 0) text += fmt::format(" and {}", step.second.peer);
  if (receives(step.op)) text += fmt::format(" from {}", step.end.peer);
  return text;
}

std::string where(Rank rank, const Program& program, std::int64_t step) {
  return fmt::format("rank {} step {} ({})", rank, step, describe(program, program.steps[step]));
}

std::optional<Fault> StepWiring::connect(const Schedule& schedule, StepWiring& wiring) {
  if (auto fault = wiring.number(schedule)) return fault;
  if (auto fault = wiring.match(schedule)) return fault;
  wiring.follow(schedule);
  return {};
}

Rank StepWiring::rank(StepId id) const {
  return static_cast<Rank>(std::upper_bound(first_.begin(), first_.end(), id) - first_.begin() - 1);
}

StepId StepWiring::second_partner(StepId id) const {
  const auto found = std::lower_bound(second_.begin(), second_.end(), std::pair(id, StepId{0}));
  return found != second_.end() && found->first == id ? found->second : none;
}

std::optional<Fault> StepWiring::number(const Schedule& s) {
  if (static_cast<std::int64_t>(s.programs.size()) != s.ranks())
    return Fault{.text = fmt::format("{} programs for {} ranks", s.programs.size(), s.ranks())};
  if (s.steps() >= none) return Fault{.text = fmt::format("{} steps are more than can be numbered", s.steps())};
  first_.assign(1, 0);
  for (Rank r = 0; r < s.ranks(); ++r) {
    const Program& program = s.programs[r];
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      if (const Step& step = program.steps[i];
          !within(step.after, program.befores.size()) || !within(step.further, program.slices.size()))
        return Fault{r, static_cast<std::int64_t>(i), -1,
                     fmt::format("rank {} step {} points beyond its program's lists", r, i)};
      for (std::int32_t before : program.after(program.steps[i]))
        if (before < 0 || before >= static_cast<std::int64_t>(i))
          return Fault{r, static_cast<std::int64_t>(i), -1,
                       fmt::format("{} waits for step {}, which is not before it", where(s, r, i), before)};
    }
    first_.push_back(first_.back() + static_cast<StepId>(program.steps.size()));
  }
  return {};
}

std::optional<Fault> StepWiring::match(const Schedule& s) {
  std::vector<std::vector<Arrival>> arrivals(s.ranks());
  for (Rank r = 0; r < s.ranks(); ++r) {
    const auto& steps = s.programs[r].steps;
    for (std::size_t i = 0; i < steps.size(); ++i)
      if (receives(steps[i].op))
        arrivals[r].push_back({steps[i].end.peer, steps[i].end.tag, steps[i].channel, id(r, i)});
    std::ranges::sort(arrivals[r], {}, &Arrival::key);
    for (std::size_t i = 0; i < arrivals[r].size(); ++i)
      if (const Arrival& a = arrivals[r][i]; i > 0 && arrivals[r][i - 1].key() == a.key()) {
        const std::int64_t step = arrivals[r][i].step - first_[r];
        return Fault{r, step, -1,
                     fmt::format("{} receives {} a second time: step {} does too", where(s, r, step),
                                 describe_end(steps[step], steps[step].end), arrivals[r][i - 1].step - first_[r])};
      } else if (const bool follows =
                     i > 0 && arrivals[r][i - 1].peer == a.peer && arrivals[r][i - 1].channel == a.channel;
                 a.tag != (follows ? arrivals[r][i - 1].tag + 1 : 0)) {
        const std::int64_t step = a.step - first_[r];
        return Fault{r, step, -1,
                     fmt::format("{} receives {}, but none is numbered {}", where(s, r, step),
                                 describe_end(steps[step], steps[step].end), follows ? arrivals[r][i - 1].tag + 1 : 0)};
      }
  }
  partner_.assign(count(), none);
  const auto join = [&](Rank r, std::int64_t i, const End& end, bool second) -> std::optional<Fault> {
    const Step& step = s.programs[r].steps[i];
    const auto complain = [&](std::string_view why) {
      return Fault{r, i, -1, fmt::format("{}: {} {}", where(s, r, i), describe_end(step, end), why)};
    };
    if (end.peer < 0 || end.peer >= s.ranks() || end.peer == r) return complain("names no other rank of the schedule");
    const Arrival wanted{r, end.tag, step.channel, 0};
    const auto found = std::ranges::lower_bound(arrivals[end.peer], wanted.key(), {}, &Arrival::key);
    if (found == arrivals[end.peer].end() || found->key() != wanted.key())
      return complain("is received by no step there");
    if (partner_[found->step] != none) return complain("is sent a second time");
    partner_[found->step] = id(r, i);
    if (second)
      second_.emplace_back(id(r, i), found->step);
    else
      partner_[id(r, i)] = found->step;
    return {};
  };
  for (Rank r = 0; r < s.ranks(); ++r) {
    const auto& steps = s.programs[r].steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!sends(steps[i].op)) continue;
      if (auto fault = join(r, i, steps[i].end, false)) return fault;
      if (steps[i].second == End{}) continue;
      if (auto fault = join(r, i, steps[i].second, true)) return fault;
    }
  }
  for (Rank r = 0; r < s.ranks(); ++r)
    for (const Arrival& a : arrivals[r])
      if (partner_[a.step] == none)
        return Fault{r, a.step - first_[r], -1,
                     fmt::format("{} waits for a transfer that rank {} never sends (transfer {} on channel {})",
                                 where(s, r, a.step - first_[r]), a.peer, a.tag, a.channel)};
  return {};
}

void StepWiring::follow(const Schedule& s) {
  begin_.assign(std::size_t{count()} + 1, 0);
  const auto each = [&](auto visit) {
    for (Rank r = 0; r < s.ranks(); ++r) {
      const Program& program = s.programs[r];
      for (std::size_t i = 0; i < program.steps.size(); ++i)
        for (std::int32_t before : program.after(program.steps[i])) visit(id(r, before), id(r, i));
    }
  };
  each([&](StepId before, StepId) { ++begin_[before + 1]; });
  for (StepId i = 0; i < count(); ++i) begin_[i + 1] += begin_[i];
  followers_.resize(begin_.back());
  std::vector<StepId> next(begin_.begin(), begin_.end() - 1);
  each([&](StepId before, StepId after) { followers_[next[before]++] = after; });
}

DataflowExecutor::DataflowExecutor(const Schedule& schedule, const StepWiring& wiring)
    : schedule_(schedule), wiring_(wiring) {
  waits_.reserve(wiring.count());
  for (const Program& program : schedule.programs)
    for (const Step& step : program.steps) waits_.push_back(step.after.count + 1);
}

void DataflowExecutor::start(StepId id) {
  const StepId partner = wiring_.partner(id);
  if (partner == StepWiring::none) return ready_.push_back(id);
  const bool receiving = receives(schedule_.programs[wiring_.rank(id)].steps[wiring_.step(id)].op);
  const StepId send = receiving ? partner : id;
  const StepId also = wiring_.second_partner(send);
  if (started(send) && started(wiring_.partner(send)) && (also == StepWiring::none || started(also)))
    ready_.push_back(send);
}

void DataflowExecutor::finish(StepId id) {
  waits_[id] = finished_mark;
  ++finished_;
  for (StepId next : wiring_.lets_go(id))
    if (--waits_[next] == 0) start(next);
}

// An unfinished step that this unfinished step waits for.
StepId DataflowExecutor::blocker(StepId id) const {
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

std::vector<StepId> DataflowExecutor::circle() const {
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
