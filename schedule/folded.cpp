#include "schedule/folded.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <set>

#include "schedule/bounds.h"
#include "schedule/races.h"

namespace trellis::schedule {
namespace {

std::optional<Fault> differ(Rank rank, std::int64_t step, const std::string& how) {
  return Fault{rank, step, -1, fmt::format("rank {} step {} is not what symmetry promises: {}", rank, step, how)};
}

// A machine of the same form that is small enough to write out.
Request shrunk(const Algorithm& algorithm, const Request& request) {
  for (const Rank most : {4, 3, 5, 6, 8, 2}) {
    Request small = request;
    for (Rank& d : small.dims) d = std::min(d, request.dims.size() == 1 ? most * 4 : most);
    const Rank ranks = small.ranks();
    small.root = std::min(small.root, ranks - 1);
    small.peer = std::min(small.peer, ranks - 1);
    std::erase_if(small.pairs, [&](const Pair& p) { return p.source >= ranks || p.target >= ranks; });
    if (ranks <= 1024 && refusal(algorithm, small).empty()) return small;
  }
  throw std::invalid_argument(fmt::format("{} serves no small machine of the form {}: it can't be proved there",
                                          algorithm.name, fmt::join(request.dims, "x")));
}

// The rules that a program must keep by itself, whatever the other ranks do.
std::optional<Fault> check_alone(const Task& task, Rank rank, const Program& program) {
  constexpr int any_channel = 256;
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    for (std::int32_t before : program.after(program.steps[i]))
      if (before < 0 || before >= static_cast<std::int64_t>(i))
        return Fault{rank, static_cast<std::int64_t>(i), -1,
                     fmt::format("rank {} step {} waits for step {}", rank, i, before)};
  if (auto fault = find_misfit(task, any_channel, rank, program)) return fault;
  return find_race(task, rank, program);
}

using Transfer = std::tuple<std::uint8_t, std::int32_t, std::int32_t>;  // channel, tag, chunks

// What passes from one rank to another, as one of the two sees it.
std::multiset<Transfer> transfers(const Program& program, Rank peer, bool outgoing) {
  std::multiset<Transfer> found;
  for (const Step& step : program.steps) {
    if (outgoing && sends(step.op))
      for (const End& end : {step.end, step.second})
        if (end.peer == peer) found.emplace(step.channel, end.tag, step.from.count);
    if (!outgoing && receives(step.op) && step.end.peer == peer)
      found.emplace(step.channel, step.end.tag, step.to.count);
  }
  return found;
}

std::optional<Fault> check_ends(const Algorithm& algorithm, const Request& request, Rank rank, const Program& program,
                                int samples, std::int64_t& met) {
  std::set<Rank> peers;
  for (const Step& step : program.steps)
    for (const End& end : {step.end, step.second})
      if (end.peer >= 0) peers.insert(end.peer);
  const std::size_t stride = std::max<std::size_t>(1, peers.size() / std::max(1, samples));
  std::size_t at = 0;
  for (Rank peer : peers) {
    if (at++ % stride != 0) continue;
    const Program other = make_program(algorithm, request, peer);
    if (transfers(program, peer, true) != transfers(other, rank, false) ||
        transfers(program, peer, false) != transfers(other, rank, true))
      return Fault{rank, -1, -1, fmt::format("ranks {} and {} disagree about what passes between them", rank, peer)};
    ++met;
  }
  return {};
}

std::optional<Fault> check_small(const Algorithm& algorithm, const Request& small) {
  const Schedule schedule = make(algorithm, small);
  if (Report report = verify(schedule); !report.ok()) return report.fault;
  const Symmetry symmetry = symmetry_of(algorithm, small);
  for (Rank r = 0; r < small.ranks(); ++r) {
    if (!same(make_program(algorithm, small, r), schedule.programs[r]))
      return Fault{r, -1, -1, fmt::format("rank {}: the program made alone is not the one made with all", r)};
    const Rank like = symmetry.representative(r);
    if (auto fault = find_difference(symmetry, like, schedule.programs[like], r, schedule.programs[r])) return fault;
  }
  return {};
}

}  // namespace

std::optional<Fault> find_difference(const Symmetry& symmetry, Rank rank, const Program& a, Rank other,
                                     const Program& b) {
  if (a.steps.size() != b.steps.size())
    return differ(other, -1, fmt::format("it has {} steps, rank {} has {}", b.steps.size(), rank, a.steps.size()));
  const auto renamed = [&](const End& end) {
    return end.peer < 0 ? end : End{symmetry.image(rank, other, end.peer), end.tag};
  };
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    const Step &x = a.steps[i], &y = b.steps[i];
    const auto step = static_cast<std::int64_t>(i);
    if (x.op != y.op || x.channel != y.channel)
      return differ(other, step, fmt::format("{}, not {}", name(y.op), name(x.op)));
    if (x.to.count != y.to.count || x.from.count != y.from.count || a.further(x).size() != b.further(y).size())
      return differ(other, step, "other sizes");
    if (renamed(x.end) != y.end || renamed(x.second) != y.second)
      return differ(
          other, step,
          fmt::format("peer {} tag {}, not {} tag {}", y.end.peer, y.end.tag, renamed(x.end).peer, x.end.tag));
    if (!std::ranges::equal(a.after(x), b.after(y))) return differ(other, step, "it waits for other steps");
  }
  return {};
}

FoldedReport verify_folded(const Algorithm& algorithm, const Request& request, int samples) {
  const Task task = task_of(algorithm, request);
  const Symmetry symmetry = symmetry_of(algorithm, request);
  FoldedReport report{.fault = {}, .ranks = task.ranks, .classes = symmetry.classes()};
  const Request small = shrunk(algorithm, request);
  if ((report.fault = check_small(algorithm, small))) return report;
  report.proved.push_back(
      fmt::format("in full on {}, where every rank is as its class says", fmt::join(small.dims, "x")));

  std::mt19937 random(1);
  std::vector<Rank> classes = symmetry.representatives();
  if (static_cast<int>(classes.size()) > samples) {
    std::shuffle(classes.begin(), classes.end(), random);
    classes.resize(samples);
  }
  std::int64_t met = 0, alike = 0;
  for (Rank rank : classes) {
    const Program program = make_program(algorithm, request, rank);
    report.steps += static_cast<std::int64_t>(program.steps.size());
    if ((report.fault = check_alone(task, rank, program))) return report;
    if ((report.fault = check_ends(algorithm, request, rank, program, samples, met))) return report;
    for (int i = 0; i < samples; ++i) {
      const auto other = static_cast<Rank>(random() % static_cast<std::uint32_t>(task.ranks));
      if (symmetry.representative(other) != symmetry.representative(rank)) continue;
      if ((report.fault = find_difference(symmetry, rank, program, other, make_program(algorithm, request, other))))
        return report;
      ++alike;
    }
  }
  report.proved.push_back(fmt::format("bounds, sizes and races of {} of {} classes", classes.size(), report.classes));
  report.proved.push_back(fmt::format("that both ends of {} pairs of ranks name the same transfers", met));
  report.proved.push_back(fmt::format("that {} further ranks are as their class says", alike));
  return report;
}

}  // namespace trellis::schedule
