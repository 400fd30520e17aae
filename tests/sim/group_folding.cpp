// Groups that do the same at the same time are folded: of ranks that nothing tells apart, one is simulated for all, and
// times stay the same to the picosecond.
#include <gtest/gtest.h>

#include "schedule/algorithms/algorithm.h"
#include "sim/cluster/choose/usual_configs.h"
#include "sim/cluster/price/simulation_run.h"

namespace trellis::sim {
namespace {

using schedule::Collective;

// All groups of `size` ranks at a distance of `stride`; at most the first `most` of them.
std::vector<std::vector<Rank>> groups_of(Rank ranks, Rank size, Rank stride, std::size_t most) {
  std::vector<std::vector<Rank>> all;
  for (Rank first = 0; first < ranks && all.size() < most; ++first) {
    if (first / stride % size != 0) continue;
    auto& group = all.emplace_back();
    for (Rank i = 0; i < size; ++i) group.push_back(first + i * stride);
  }
  return all;
}

struct Ran {
  Time time = 0;
  Rank simulated = 0;
  std::vector<Time> ended;
};

Ran ran(const Machine& machine, const CompiledSchedule& pattern, const std::vector<std::vector<Rank>>& groups,
        bool fold) {
  std::vector<SimulatedCollective> all;
  for (const auto& group : groups) all.push_back({.pattern = &pattern, .bytes = 1'234'567, .members = group});
  SimulationRun run(machine, all, {.fold = fold});
  Ran result{.time = run.run(), .simulated = run.simulated(), .ended = {}};
  for (std::size_t i = 0; i < groups.size(); ++i) result.ended.push_back(run.ended(i));
  return result;
}

struct Case {
  const char* machine;
  Rank size, stride;
  std::size_t most = 1000;
};

class GroupFolding : public testing::TestWithParam<Case> {};

TEST_P(GroupFolding, TakesAsLongAsEveryRankDoes) {
  const Case& c = GetParam();
  const Machine machine = machine_named(c.machine);
  const auto groups = groups_of(machine.ranks(), c.size, c.stride, c.most);
  int folded = 0;
  for (Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter})
    for (const auto& [name, algorithm] : schedule::algorithms()) {
      const schedule::Request request{.operation = {.collective = collective},
                                      .dims = usual_dims(name, machine, c.size)};
      if (!refusal(algorithm, request).empty()) continue;
      const CompiledSchedule pattern(algorithm, request);
      const Ran one = ran(machine, pattern, groups, true), all = ran(machine, pattern, groups, false);
      EXPECT_EQ(one.time, all.time) << c.machine << ' ' << schedule::name(collective) << ' ' << name;
      EXPECT_EQ(one.ended, all.ended) << c.machine << ' ' << schedule::name(collective) << ' ' << name;
      EXPECT_EQ(all.simulated, c.size * static_cast<Rank>(groups.size()));
      folded += one.simulated < all.simulated;
    }
  EXPECT_GT(folded, 0);
}

INSTANTIATE_TEST_SUITE_P(Machines, GroupFolding,
                         testing::Values(Case{"trn1.32xlarge", 8, 1}, Case{"trn1.32xlarge", 4, 8},
                                         Case{"trn1.32xlarge x 2", 2, 32}, Case{"trn1.32xlarge x 4", 16, 8},
                                         Case{"trn1.32xlarge x 4", 8, 8, 8}, Case{"trn2.48xlarge", 32, 1},
                                         Case{"trn2.48xlarge x 2", 4, 32}, Case{"trn2.48xlarge x 4", 8, 32, 1},
                                         Case{"ring:8", 4, 2}, Case{"torus:4x4", 4, 4}, Case{"switch:16", 4, 4},
                                         Case{"trn1.32xlarge x 4", 2, 64, 32}, Case{"ring:16", 8, 1}));

TEST(GroupFolding, KeepsApartWhatDiffers) {
  const Machine machine = machine_named("trn1.32xlarge x 2");
  const CompiledSchedule pattern(schedule::algorithm_named("ring"), {.dims = {4}});
  const auto simulated = [&](const Machine& on, const std::vector<std::vector<Rank>>& groups) {
    const Ran one = ran(on, pattern, groups, true), all = ran(on, pattern, groups, false);
    EXPECT_EQ(one.time, all.time);
    EXPECT_EQ(one.ended, all.ended);
    return one.simulated;
  };
  EXPECT_LT(simulated(machine, groups_of(64, 4, 16, 100)), 64);
  EXPECT_EQ(simulated(machine, {{0, 16, 48, 32}}), 4);             // the ranks are not evenly spaced
  EXPECT_EQ(simulated(machine, {{0, 1, 2, 3}, {2, 3, 4, 5}}), 8);  // a rank is in both
  EXPECT_EQ(simulated(machine, {{0, 1, 2, 3}, {5, 6, 7, 8}}), 8);  // no renaming of ranks maps one to the other
  EXPECT_EQ(simulated(machine, {{0, 1, 2, 3}, {4, 5, 7, 6}}), 8);  // the second is in another order
  MachineSpec slow = machine.spec();
  what_if(slow, "straggler:3:0.5");
  EXPECT_EQ(simulated(Machine(slow), groups_of(64, 4, 16, 100)), 64);
}

// Sums along one axis run beside sums along another, and beside later sums along the first axis on half of the ranks.
TEST(GroupFolding, KindsBesideEachOtherFoldByWhatAllAllow) {
  int less = 0;
  for (const char* name : {"trn1.32xlarge x 4", "ring:16", "torus:8x8", "trn2.48xlarge"}) {
    const Machine machine = machine_named(name);
    const Rank ranks = machine.ranks();
    const CompiledSchedule inner(schedule::algorithm_named("ring"), {.dims = {4}});
    const CompiledSchedule outer(schedule::algorithm_named("ring"), {.dims = {ranks / 8}});
    std::vector<SimulatedCollective> all;
    for (const auto& group : groups_of(ranks, 4, 1, 1000))
      all.push_back({.pattern = &inner, .bytes = 4'000'000, .members = group});
    for (const auto& group : groups_of(ranks, ranks / 8, 8, 1000))
      all.push_back({.pattern = &outer, .bytes = 9'000'000, .members = group, .start = 3 * us});
    for (const auto& group : groups_of(ranks, 4, 1, 1000))
      if (group[0] < ranks / 2) all.push_back({.pattern = &inner, .bytes = 555'555, .members = group, .start = 9 * us});
    sim::SimulationRun folded(machine, all, {}), whole(machine, all, {.fold = false});
    EXPECT_EQ(folded.run(), whole.run()) << name;
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(folded.ended(i), whole.ended(i)) << name << ' ' << i;
    less += 2 * folded.simulated() <= whole.simulated();
  }
  EXPECT_EQ(less, 3);  // not on a ring: no rotation maps half of it onto itself
}

// A later stage of a pipeline sends to an earlier one, during sums over its own ranks.
TEST(GroupFolding, MessagesToLowerRanksFold) {
  const Machine machine = machine_named("trn1.32xlarge x 4");
  const CompiledSchedule message(schedule::algorithm_named("direct"),
                                 {.operation = {.collective = Collective::send_recv}, .dims = {2}});
  const CompiledSchedule sum(schedule::algorithm_named("kangaring"), {.dims = {8}});
  std::vector<SimulatedCollective> all;
  for (Rank r = 0; r < 64; ++r) all.push_back({.pattern = &message, .bytes = 3'000'000, .members = {r + 64, r}});
  for (const auto& group : groups_of(128, 8, 8, 1000))
    if (group[0] >= 64) all.push_back({.pattern = &sum, .bytes = 2'000'000, .members = group});
  sim::SimulationRun folded(machine, all, {}), whole(machine, all, {.fold = false});
  EXPECT_EQ(folded.run(), whole.run());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(folded.ended(i), whole.ended(i)) << i;
  EXPECT_LE(2 * folded.simulated(), whole.simulated());
}

// Computations read and write memory during sums.
TEST(GroupFolding, LoadsFoldAsTheirRanksDo) {
  int less = 0;
  for (const char* name : {"trn1.32xlarge x 2", "trn2.48xlarge x 2"}) {
    const Machine machine = machine_named(name);
    const Rank ranks = machine.ranks(), half = ranks / 2;
    const CompiledSchedule sum(schedule::algorithm_named("ring"), {.dims = {2}});
    std::vector<SimulatedCollective> all;
    for (const auto& group : groups_of(ranks, 2, half, 1000))
      all.push_back({.pattern = &sum, .bytes = 40'000'000, .members = group});
    std::vector<HbmLoad> loads;
    for (Rank r = 0; r < ranks; ++r) loads.push_back({r, 3e8, 9e10, 5 * us});
    for (Rank r = 0; r < half; ++r) loads.push_back({r, 1e8, 7e10, 11 * us});
    sim::SimulationRun folded(machine, all, {.loads = loads}), whole(machine, all, {.fold = false, .loads = loads});
    EXPECT_EQ(folded.run(), whole.run()) << name;
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(folded.ended(i), whole.ended(i)) << name << ' ' << i;
    for (std::size_t i = 0; i < loads.size(); ++i)
      EXPECT_EQ(folded.load_ended(i), whole.load_ended(i)) << name << ' ' << i;
    less += 2 * folded.simulated() <= whole.simulated();
  }
  EXPECT_EQ(less, 2);
}

// Only half of the hosts take part. These can be exchanged for each other, so one stands for both.
TEST(GroupFolding, APartOfARowFolds) {
  const Machine machine = machine_named("trn1.32xlarge x 4");
  const CompiledSchedule pattern(schedule::algorithm_named("ring"), {.dims = {32}});
  const Ran one = ran(machine, pattern, groups_of(128, 32, 1, 2), true);
  EXPECT_EQ(one.ended, ran(machine, pattern, groups_of(128, 32, 1, 2), false).ended);
  EXPECT_LE(one.simulated, 32);
}

}  // namespace
}  // namespace trellis::sim
