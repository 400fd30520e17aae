#include "sim/cluster/price/timeline.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "sim/cluster/choose/algorithm_choice.h"
#include "sim/cluster/price/critical_path.h"
#include "sim/hardware/report/html_report.h"

namespace trellis::sim {
namespace {

using schedule::Request;

// A run, kept together with all that it refers to.
struct Kept {
  Kept(const char* algorithm, const std::string& name, PriceOptions given, const std::string& change = "")
      : spec(machine_spec(name)), options(std::move(given)) {
    if (!change.empty()) what_if(spec, change);
    machine.emplace(spec);
    const Request request{.dims = usual_dims(algorithm, *machine, machine->ranks())};
    pattern.emplace(schedule::algorithm_named(algorithm), request);
    run = run_for(*pattern, *machine, options, true);
    time = run->run();
  }
  MachineSpec spec;
  PriceOptions options;
  std::optional<Machine> machine;
  std::optional<CompiledSchedule> pattern;
  std::unique_ptr<SimulationRun> run;
  Time time = 0;
};

std::set<std::string> groups(const Timeline& t) {
  std::set<std::string> all;
  for (const Track& track : t.tracks) all.insert(track.group);
  return all;
}

TEST(PriceTimeline, EveryRankAndEveryLinkHasItsRow) {
  const Kept k("ring", "ring:4", {.bytes = 4e6, .fold = false});
  const RunTimeline seen = timeline_of(*k.run, *k.machine);
  EXPECT_EQ(groups(seen.timeline), (std::set<std::string>{"chip 0", "chip 1", "chip 2", "chip 3", "ring x+"}));
  EXPECT_EQ(seen.gone_through, 4);
  EXPECT_EQ(seen.shown, (std::vector<Rank>{0, 1, 2, 3}));
  double moved = 0;
  std::map<std::string, Time> busy;
  for (const Span& s : seen.timeline.spans) {
    moved += s.bytes;
    busy[seen.timeline.tracks[s.track].name] += s.end - s.start;
    EXPECT_LE(s.end, k.time);
  }
  EXPECT_DOUBLE_EQ(moved, 4 * 6 * 1e6);  // ranks, steps, bytes
  EXPECT_EQ(busy["ring x+ of chip 2"], 6 * transfer_time(1e6, 50e9));
  EXPECT_FALSE(html_report(seen.timeline).empty());  // which checks every span
}

TEST(PriceTimeline, OneRowForALinkThatManyShare) {
  const Kept k("direct", "switch:6", {.bytes = 6e6, .fold = false});
  const RunTimeline seen = timeline_of(*k.run, *k.machine);
  std::map<std::uint32_t, Time> until;
  bool shared = false;
  for (const Span& s : seen.timeline.spans) {
    const Track& track = seen.timeline.tracks[s.track];
    if (!track.group.starts_with("switch")) continue;
    EXPECT_GE(s.start, until[s.track]) << track.name;
    until[s.track] = s.end;
    shared = shared || seen.timeline.label(s.label).find("at once: ") != std::string::npos;
  }
  EXPECT_TRUE(shared);
}

TEST(PriceTimeline, WhatIsWaitedForIsNamed) {
  const Kept k("double_tree", "full:8", {.bytes = 1e6, .fold = false});
  const RunTimeline seen = timeline_of(*k.run, *k.machine);
  int named = 0;
  for (const Span& s : seen.timeline.spans) {
    if (seen.timeline.tracks[s.track].name != "waiting") continue;
    const std::string& label = seen.timeline.label(s.label);
    EXPECT_NE(label, "for " + seen.timeline.tracks[s.track].group);
    named += label.starts_with("for chip ");
  }
  EXPECT_GE(named, 8);
}

TEST(PriceTimeline, LargeRunsShowPartOfTheRanks) {
  const Kept k("ring", "ring:16", {.bytes = 16e6, .fold = false});
  const RunTimeline few = timeline_of(*k.run, *k.machine, {.most_spans = 700});
  EXPECT_EQ(few.gone_through, 16);
  EXPECT_EQ(few.shown, (std::vector<Rank>{0, 1}));  // 30 moves each
  EXPECT_EQ(timeline_of(*k.run, *k.machine, {.ranks = {5, 9}}).shown, (std::vector<Rank>{5, 9}));
  EXPECT_THROW(timeline_of(*k.run, *k.machine, {.ranks = {16}}), std::invalid_argument);
  const Kept folded("ring", "ring:16", {.bytes = 16e6});
  EXPECT_EQ(timeline_of(*folded.run, *folded.machine).gone_through, 1);
  EXPECT_THROW(timeline_of(*folded.run, *folded.machine, {.ranks = {5}}), std::invalid_argument);
}

TEST(PricePhases, AreSumsAndCopiesByDimension) {
  for (const bool fold : {true, false}) {
    const Kept k("torus", "torus:4x4", {.bytes = 16e6, .fold = fold});
    std::set<std::string> names;
    Time on_path = 0;
    for (const CollectivePhase& p : phases_of(*k.run, *k.machine, critical_moves(*k.run), k.time)) {
      names.insert(p.name);
      EXPECT_LT(p.from, p.to);
      EXPECT_LE(p.to, k.time);
      EXPECT_GT(p.transfers, 0);
      on_path += p.on_path;
    }
    EXPECT_EQ(names, (std::set<std::string>{"sum over torus x", "sum over torus y", "copy over torus x",
                                            "copy over torus y"}));
    EXPECT_LE(on_path, k.time);
    EXPECT_GT(on_path, k.time / 2);
  }
}

TEST(PricePath, NamesThePairThatIsWaitedFor) {
  const Machine ring = [] {
    MachineSpec spec = machine_spec("ring:8");
    what_if(spec, "slow:2-3:0.05");
    return Machine(std::move(spec));
  }();
  const Price p = price(schedule::algorithm_named("ring"), {.dims = {8}}, ring, {.bytes = 64e6, .explain = true});
  EXPECT_EQ(path_shares(p, ring).front().words, "chip 2 waits for its send to chip 3 over ring x+");
  EXPECT_NE(path_in_words(p, ring).find("% chip 2 waits"), std::string::npos);
  Time sum = 0;
  for (const CriticalPathLeg& leg : p.path) sum += leg.time;
  EXPECT_EQ(sum, p.time);
}

TEST(PricePath, OfManyPairsTheLongestIsNamed) {
  const Machine m = machine_named("torus:4x4");
  const Price p =
      price(schedule::algorithm_named("torus"), {.dims = {4, 4}}, m, {.bytes = 64e6, .fold = false, .explain = true});
  EXPECT_NE(path_in_words(p, m).find("(the longest, chip "), std::string::npos) << path_in_words(p, m);
}

TEST(RunOfJobs, ALoadSharesHbmWithTransfers) {
  const Machine m = machine_named("trn2.48xlarge");
  const double hbm = m.rate(m.hbm(0));
  const auto ended = [&](bool collective, double rate) {
    std::vector<SimulatedCollective> collectives;
    const CompiledSchedule pattern(schedule::algorithm_named("mesh"), {.dims = {4, 16}});
    if (collective) collectives.push_back({.pattern = &pattern, .bytes = 256e6});
    sim::SimulationRun run(
        m, collectives, {.loads = {{.rank = 0, .bytes = 1e9, .rate = rate}, {.rank = 1, .bytes = 1e9, .rate = rate}}});
    run.run();
    return run.load_ended(0);
  };
  const Time alone = ended(false, hbm / 4);
  EXPECT_NEAR(in_seconds(alone), 1e9 / (hbm / 4), 1e-9);
  EXPECT_EQ(ended(true, hbm / 100), ended(false, hbm / 100)) << "there is room for both";
  EXPECT_GT(ended(true, hbm), ended(false, hbm));
}

// A run ends with its last arrival. A later end, which was predicted before a transfer's rate rose, must not count.
TEST(RunOfJobs, EndsWithTheLastArrival) {
  const Kept k("torus", "torus:4x4x4", {.bytes = 64e6, .fold = false}, "slow:0-1:0.5");
  Time last = 0;
  for (std::int64_t i = 0; i < std::ssize(k.run->traces()); ++i)
    last = std::max(last, k.run->traces()[i].end + k.run->latency(i));
  EXPECT_EQ(k.time, last);
  EXPECT_EQ(k.time, k.run->ended(0));
}

TEST(RunOfJobs, GivesUpWhenItIsTold) {
  const Machine m = machine_named("torus:8x8");
  PriceOptions options{.bytes = 64e6, .fold = false};
  double done = 0;
  options.stopped = [&](Time, double part) {
    done = part;
    return part > 0.25;
  };
  EXPECT_EQ(price(schedule::algorithm_named("torus"), {.dims = {8, 8}}, m, options).time, forever);
  EXPECT_GT(done, 0.25);
  EXPECT_LT(done, 1);
}

}  // namespace
}  // namespace trellis::sim
