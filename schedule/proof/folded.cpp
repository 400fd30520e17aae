#include "schedule/proof/folded.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include "schedule/proof/check_steps.h"
#include "schedule/proof/small_form.h"
#include "schedule/proof/step_race_detector.h"
#include "text/refuse.h"

namespace trellis::schedule {
namespace {

constexpr std::int64_t most_steps = 10'000'000;  // of built programs, after which fewer samples are taken

std::optional<Fault> differ(Rank rank, std::int64_t step, const std::string& how) {
  return Fault{rank, step, -1, fmt::format("rank {} step {} is not what symmetry promises: {}", rank, step, how)};
}

// Rules that a program must keep regardless of the other ranks.
std::optional<Fault> check_alone(const Task& task, Rank rank, const Program& program) {
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    for (std::int32_t before : program.after(program.steps[i]))
      if (before < 0 || before >= static_cast<std::int64_t>(i))
        return Fault{rank, static_cast<std::int64_t>(i), -1,
                     fmt::format("rank {} step {} waits for step {}", rank, i, before)};
  if (auto fault = find_misfit(task, most_channels, rank, program)) return fault;
  return find_race(task, rank, program);
}

using Transfer = std::tuple<std::uint8_t, std::int32_t, std::int32_t>;  // channel, tag, chunks

// Transfers from one rank to another, as seen by one of them.
std::vector<Transfer> transfers(const Program& program, Rank peer, bool outgoing) {
  std::vector<Transfer> found;
  for (const Step& step : program.steps) {
    if (outgoing && sends(step.op))
      for (const End& end : {step.end, step.second})
        if (end.peer == peer) found.emplace_back(step.channel, end.tag, step.from.count);
    if (!outgoing && receives(step.op) && step.end.peer == peer)
      found.emplace_back(step.channel, step.end.tag, step.to.count);
  }
  std::ranges::sort(found);
  return found;
}

// What has been checked so far.
struct Looked {
  std::int64_t steps = 0;  // in all programs that were built
  std::int64_t pairs = 0;  // of ranks
  std::int64_t alike = 0;  // further ranks compared with one of their class

  bool enough() const { return steps > most_steps; }
};

std::optional<Fault> check_ends(const Algorithm& algorithm, const Request& request, Rank rank, const Program& program,
                                int samples, Looked& looked) {
  std::set<Rank> peers;
  for (const Step& step : program.steps)
    for (const End& end : {step.end, step.second})
      if (end.peer >= 0) peers.insert(end.peer);
  const std::size_t stride = std::max<std::size_t>(1, peers.size() / std::max(1, samples));
  std::size_t at = 0;
  for (Rank peer : peers) {
    if (at++ % stride != 0) continue;
    const Program other = make_program(algorithm, request, peer);
    looked.steps += std::ssize(other.steps);
    if (transfers(program, peer, true) != transfers(other, rank, false) ||
        transfers(program, peer, false) != transfers(other, rank, true))
      return Fault{rank, -1, -1, fmt::format("ranks {} and {} disagree about what passes between them", rank, peer)};
    ++looked.pairs;
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

// What a step reads and writes, without chunk numbers. Sorted, since a sum may add the rank's own contribution at any
// place.
std::vector<std::tuple<bool, Buffer, std::int32_t>> shape(const Program& program, const Step& step) {
  std::vector<std::tuple<bool, Buffer, std::int32_t>> found;
  each_slice(program, step, [&](const Slice& x, bool written) { found.emplace_back(written, x.buffer, x.count); });
  std::ranges::sort(found);
  return found;
}

bool same_shape(const Program& a, const Step& x, const Program& b, const Step& y) {
  const auto alike = [](const Slice& s, const Slice& t) { return s.buffer == t.buffer && s.count == t.count; };
  if (alike(x.from, y.from) && alike(x.to, y.to) && std::ranges::equal(a.further(x), b.further(y), alike)) return true;
  return shape(a, x) == shape(b, y);
}

// Ranks to check: the special ones (root, peer, first, last), and one per class, or per sampled class.
std::vector<Rank> looked_at(const Symmetry& symmetry, const Request& request, int samples, std::mt19937& random) {
  constexpr Rank most_classes = 1 << 20;
  std::set<Rank> some{0, request.operation.root, request.operation.peer, request.ranks() - 1};
  if (symmetry.classes() > most_classes) {
    for (int i = 0; i < samples; ++i)
      some.insert(static_cast<Rank>(random() % static_cast<std::uint32_t>(request.ranks())));
    return {some.begin(), some.end()};
  }
  std::vector<Rank> classes = symmetry.representatives();
  std::shuffle(classes.begin(), classes.end(), random);
  classes.resize(std::min(classes.size(), static_cast<std::size_t>(samples)));
  std::set<Rank> found(classes.begin(), classes.end());
  for (Rank r : some)
    if (symmetry.representative(r) == r || rooted(request.operation.collective)) found.insert(r);
  return {found.begin(), found.end()};
}

}  // namespace

std::optional<Fault> find_difference(const Symmetry& symmetry, Rank rank, const Program& a, Rank other,
                                     const Program& b) {
  if (a.scratch != b.scratch)
    return differ(other, -1,
                  fmt::format("it needs {} chunks of scratch, rank {} needs {}", b.scratch, rank, a.scratch));
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
    if (!same_shape(a, x, b, y)) return differ(other, step, "other sizes or buffers");
    if (renamed(x.end) != y.end || renamed(x.second) != y.second)
      return differ(
          other, step,
          fmt::format("peer {} tag {}, not {} tag {}", y.end.peer, y.end.tag, renamed(x.end).peer, x.end.tag));
    if (!std::ranges::equal(a.after(x), b.after(y))) return differ(other, step, "it waits for other steps");
  }
  return {};
}

FoldedReport verify_folded(const Algorithm& algorithm, const Request& request, int samples) {
  if (!request.numbering.empty())
    text::refuse("a numbering of {} ranks: only a schedule that is written out is proved with one",
                 request.numbering.size());
  const Task task = task_of(algorithm, request);
  const Symmetry symmetry = symmetry_of(algorithm, request);
  FoldedReport report{.fault = {}, .ranks = task.ranks, .classes = symmetry.classes()};
  const Request small = small_form(algorithm, request);
  if ((report.fault = check_small(algorithm, small))) return report;
  report.proved.push_back(
      fmt::format("in full on {}, where every rank is as its class says", fmt::join(small.dims, "x")));

  std::mt19937 random(1);
  const std::vector<Rank> classes = looked_at(symmetry, request, samples, random);
  Looked looked;
  for (Rank rank : classes) {
    if (looked.enough()) samples = 1;
    const Program program = make_program(algorithm, request, rank);
    report.steps += std::ssize(program.steps);
    looked.steps += std::ssize(program.steps);
    if ((report.fault = check_alone(task, rank, program))) return report;
    if ((report.fault = check_ends(algorithm, request, rank, program, samples, looked))) return report;
    for (int i = 0; i < samples && (i == 0 || !looked.enough()); ++i) {
      const auto other = static_cast<Rank>(random() % static_cast<std::uint32_t>(task.ranks));
      if (symmetry.representative(other) != symmetry.representative(rank)) continue;
      const Program others = make_program(algorithm, request, other);
      looked.steps += std::ssize(others.steps);
      if ((report.fault = find_difference(symmetry, rank, program, other, others))) return report;
      ++looked.alike;
    }
  }
  if (report.steps == 0 && task.ranks > 1)
    text::refuse("none of the {} ranks looked at does anything: this says nothing", classes.size());
  report.proved.push_back(fmt::format("bounds, sizes and races of {} of {} classes", classes.size(), report.classes));
  report.proved.push_back(fmt::format("that both ends of {} pairs of ranks name the same transfers", looked.pairs));
  report.proved.push_back(fmt::format("that {} further ranks are as their class says", looked.alike));
  return report;
}

}  // namespace trellis::schedule
