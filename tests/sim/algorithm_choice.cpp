#include "sim/cluster/choose/algorithm_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "sim/cluster/choose/prefix_lower_bound.h"
#include "sim/cluster/choose/rank_lower_bound.h"
#include "sim/cluster/choose/schedule_cache.h"

namespace trellis::sim {
namespace {

using enum schedule::Collective;

struct Place {
  const char* machine;
  const char* change = "";
};
constexpr Place places[] = {
    {"torus:4x2"}, {"cores:2/ring:2/clos:2"}, {"trn2.3xlarge"}, {"trn2.3xlarge x 2"}, {"torus:3x2", "slow:0-1:0.25"}};

Machine machine_at(const Place& place) {
  MachineSpec spec = machine_spec(place.machine);
  if (*place.change != 0) what_if(spec, place.change);
  return Machine(spec);
}

// The best config of each algorithm, the fastest first, found by pricing every config in full.
std::vector<ConfigCost> by_pricing_all(Pricer& pricer, const std::vector<AlgorithmConfig>& configs, double bytes) {
  std::vector<ConfigCost> best;
  for (const AlgorithmConfig& config : configs) {
    const ConfigCost cost{config, bytes, pricer.price(config, bytes).time};
    const auto own = std::ranges::find(best, config.algorithm, [](const ConfigCost& c) { return c.config.algorithm; });
    if (own == best.end())
      best.push_back(cost);
    else if (cost.time < own->time)
      *own = cost;
  }
  const auto place = [&](const ConfigCost& c) { return std::ranges::find(configs, c.config) - configs.begin(); };
  std::ranges::sort(best, [&](const ConfigCost& a, const ConfigCost& b) {
    return a.time != b.time ? a.time < b.time : place(a) < place(b);
  });
  return best;
}

TEST(AlgorithmChoice, IsThatOfPricingEveryWay) {
  for (const Place& place : places) {
    const Machine machine = machine_at(place);
    for (const auto collective : {all_reduce, all_gather, reduce_scatter, all_to_all, broadcast}) {
      Pricer pricer(machine, groups_of(machine).front(), {.operation = {.collective = collective, .peer = last_rank}});
      for (const double bytes : {8.0, 5000.0, 1e8}) {
        const std::vector<AlgorithmConfig> configs = usual_configs(pricer, bytes);
        const std::vector<ConfigCost> all = by_pricing_all(pricer, configs, bytes);
        for (const std::size_t algorithms : {1, 3}) {
          const AlgorithmChoice choice = choose(pricer, configs, bytes, {.algorithms = algorithms});
          ASSERT_EQ(choice.best.size(), std::min(algorithms, all.size()));
          EXPECT_TRUE(choice.untried.empty());
          for (std::size_t i = 0; i < choice.best.size(); ++i) {
            EXPECT_EQ(text_of(choice.best[i].config), text_of(all[i].config))
                << place.machine << " " << name(collective) << " " << bytes << " " << i;
            EXPECT_EQ(choice.best[i].time, all[i].time);
          }
        }
      }
    }
  }
}

TEST(AlgorithmChoice, WithinSoMuchItIsThatOfPricingEveryWay) {
  const Machine machine = machine_named("cores:2/ring:4");
  for (const auto collective : {all_reduce, all_to_all}) {
    Pricer pricer(machine, groups_of(machine).front(), {.operation = {.collective = collective, .peer = last_rank}});
    for (const double bytes : {1e4, 1e8}) {
      const std::vector<AlgorithmConfig> configs = usual_configs(pricer, bytes);
      const auto exact = static_cast<double>(by_pricing_all(pricer, configs, bytes).front().time);
      for (const double within : {0.005, 0.2})
        EXPECT_LE(
            static_cast<double>(choose(pricer, configs, bytes, {.within = within}).best.front().time) * (1 - within),
            exact);
    }
  }
}

TEST(AlgorithmChoice, NoPriceIsBelowWhatAWayTakesAtLeast) {
  for (const Place& place : places) {
    const Machine machine = machine_at(place);
    for (const auto collective : {all_reduce, all_to_all, broadcast}) {
      Pricer pricer(machine, groups_of(machine).front(), {.operation = {.collective = collective, .peer = last_rank}});
      for (const AlgorithmConfig& config : usual_configs(pricer, 1e8)) {
        const auto& algorithm = schedule::algorithm_named(config.algorithm);
        for (const double bytes : {8.0, 1e6, 1e8}) {
          const Time time = pricer.price(config, bytes).time;
          EXPECT_LE(pricer.least(config, bytes), time) << place.machine << " " << text_of(config) << " " << bytes;
          for (const std::int64_t steps : {8, 64, 1024})
            EXPECT_LE(prefix_lower_bound(
                          algorithm, pricer.request(config), machine, pricer.options(bytes),
                          [&](Rank rank, std::size_t least) { return pricer.steps(config, rank, least); }, steps),
                      time)
                << place.machine << " " << text_of(config) << " " << bytes << " " << steps << " steps";
          const auto task = task_of(algorithm, pricer.request(config));
          for (Rank r = 0; r < machine.ranks(); r += 3) {
            const schedule::Program program = make_program(algorithm, pricer.request(config), r);
            RankRoutes configs(machine, r);
            ResourceLoads loads(machine);
            RankLowerBound bound(r, task, machine, pricer.options(bytes), configs, loads);
            for (const schedule::Step& step : program.steps) bound.add(program, step);
            EXPECT_LE(bound.least(), time) << place.machine << " " << text_of(config) << " " << bytes << " rank " << r;
          }
          EXPECT_LE(pricer.least_of_chip(config, bytes), time)
              << place.machine << " " << text_of(config) << " " << bytes;
        }
      }
    }
  }
}

// A ring's chain goes through all ranks, and a few steps of one rank are enough to bound its length.
TEST(AlgorithmChoice, AFewStepsShowLongChains) {
  const Machine machine = machine_named("ring:64");
  const auto& ring = schedule::algorithm_named("ring");
  const schedule::Request request{.dims = {64}};
  const PriceOptions options{.bytes = 256};
  const Pricer pricer(machine, groups_of(machine).front(), {});
  const auto steps = [&](Rank rank, std::size_t least) { return pricer.steps({.algorithm = "ring"}, rank, least); };
  const Time all = price(ring, request, machine, options).time;
  const Time some = prefix_lower_bound(ring, request, machine, options, steps, 128);
  EXPECT_GT(some, all / 4);
  EXPECT_EQ(prefix_lower_bound(ring, request, machine, options, steps, 128, some - 1), forever);
}

// The slow reference: builds the rank's program anew, step by step, until it has `most` steps or its bound exceeds
// `limit`.
Pricer::Outline outlined_anew(Pricer& pricer, const AlgorithmConfig& config, double bytes, std::int64_t most,
                              Time limit) {
  const auto& algorithm = schedule::algorithm_named(config.algorithm);
  const schedule::Request request = pricer.request(config);
  RankRoutes routes(pricer.machine(), 0);
  ResourceLoads loads(pricer.machine());
  const schedule::Task task = task_of(algorithm, request);
  RankLowerBound bound(0, task, pricer.machine(), pricer.options(bytes), routes, loads);
  const bool whole = watch_program(algorithm, request, 0, [&](const schedule::Program& p) {
    bound.add(p, p.steps.back());
    return bound.steps() < most && (limit == forever || bound.least() <= limit);
  });
  return {bound.least(), bound.moves() * task.ranks, bound.steps(), whole};
}

TEST(AlgorithmChoice, WhatIsKeptOfProgramsGivesTheSameBounds) {
  const Machine machine = machine_named("trn2.48xlarge");
  Pricer pricer(machine, first_ranks(machine, 32), {.operation = {.collective = all_reduce}});
  for (const AlgorithmConfig& config : usual_configs(pricer, 1e8))
    for (const std::int64_t most : {std::int64_t{16}, std::int64_t{4096}, std::int64_t{7}, Pricer::any_steps})
      for (const Time limit : {forever, 300 * us}) {
        const Pricer::Outline kept = pricer.outline(config, 1e8, most, limit),
                              anew = outlined_anew(pricer, config, 1e8, most, limit);
        EXPECT_EQ(kept.least, anew.least) << text_of(config) << " " << most;
        EXPECT_EQ(kept.steps, anew.steps) << text_of(config) << " " << most;
        EXPECT_EQ(kept.moves, anew.moves) << text_of(config) << " " << most;
        EXPECT_EQ(kept.whole, anew.whole) << text_of(config) << " " << most;
      }
}

// Compares choices at several sizes, with a cache of schedules and without one.
TEST(AlgorithmChoice, WhatIsKeptOfSchedulesChangesNoChoice) {
  for (const char* name : {"trn2.3xlarge x 2", "trn1.2xlarge x 4"}) {
    const Machine machine = machine_named(name);
    for (const auto collective : {all_reduce, all_gather, reduce_scatter}) {
      const auto shelf = std::make_shared<ScheduleCache>();
      for (const double bytes : {8.0, 1e5, 1e8, 1e5}) {
        const auto chosen = [&](const std::shared_ptr<ScheduleCache>& from) {
          Pricer pricer(machine, groups_of(machine).front(),
                        {.operation = {.collective = collective, .peer = last_rank}, .shelf = from});
          return choose(pricer, usual_configs(pricer, bytes), bytes, {.within = 0.03, .most_effort = 500'000});
        };
        const AlgorithmChoice kept = chosen(shelf), anew = chosen(nullptr);
        ASSERT_FALSE(kept.best.empty());
        EXPECT_EQ(text_of(kept.best[0].config), text_of(anew.best[0].config)) << name << " " << bytes;
        EXPECT_EQ(kept.best[0].time, anew.best[0].time);
        EXPECT_EQ(kept.priced, anew.priced);
        EXPECT_EQ(kept.others.size(), anew.others.size());
      }
    }
  }
}

// A dimension of 1 changes nothing: one host gets the same configs by itself and as "x 1".
TEST(UsualConfigs, DoNotDependOnADimensionOfOne) {
  for (const auto& [one, same] : {std::pair("trn2.48xlarge", "trn2.48xlarge x 1"),
                                  {"cores:4/torus:4x4", "cores:4/torus:4x1x4/clos:1"},
                                  {"torus:16x8x16", "torus:16x8x1x16"},
                                  {"cores:4/ring:4", "cores:4/torus:1/ring:4"}})
    for (const auto collective : {all_reduce, all_gather, reduce_scatter, broadcast, all_to_all}) {
      const Machine machines[] = {machine_named(one), machine_named(same)};
      std::vector<std::string> configs[2];
      for (std::size_t i = 0; i < 2; ++i) {
        Pricer pricer(machines[i], groups_of(machines[i]).front(), {.operation = {.collective = collective}});
        for (const AlgorithmConfig& config : usual_configs(pricer, 1e6)) configs[i].push_back(text_of(config));
      }
      EXPECT_EQ(configs[0], configs[1]) << same << " " << name(collective);
      EXPECT_EQ(usual_dims("hierarchical", machines[0], machines[0].ranks()),
                usual_dims("hierarchical", machines[1], machines[1].ranks()));
    }
}

// The ring of the outermost level takes a step for each rank. Between few ranks direct exchange at every level is
// faster, and all_reduce of 1 MiB on one host by it is a fifth faster than by any other of the usual configs.
TEST(UsualConfigs, AlsoTakeDirectExchangeAtEveryLevel) {
  const Machine machine = machine_named("trn2.48xlarge");
  const std::vector<std::string> direct(3, "direct");
  for (const auto collective : {all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all}) {
    Pricer pricer(machine, groups_of(machine).front(), {.operation = {.collective = collective}});
    std::vector<AlgorithmConfig> configs = usual_configs(pricer, 1 << 20);
    const auto given = [&](const std::vector<std::string>& levels) {
      return std::ranges::count(configs,
                                AlgorithmConfig{.algorithm = "hierarchical", .levels = levels, .dims = {4, 4, 4}});
    };
    EXPECT_EQ(given({}), 1) << name(collective);
    EXPECT_EQ(given(direct), collective == all_to_all ? 0 : 1) << name(collective);  // whose usual levels are direct
    if (collective != all_reduce) continue;
    const auto chosen = fastest(pricer, configs, 1 << 20);
    std::erase_if(configs, [](const AlgorithmConfig& config) { return !config.levels.empty(); });
    const auto other = fastest(pricer, configs, 1 << 20);
    ASSERT_TRUE(chosen && other);
    EXPECT_EQ(chosen->config.levels, direct);
    EXPECT_LT(static_cast<double>(chosen->time), 0.8 * static_cast<double>(other->time));
  }
}

TEST(AlgorithmChoice, FewWaysArePricedToTheEnd) {
  const Machine machine = machine_named("trn2.48xlarge");
  Pricer pricer(machine, groups_of(machine).front(), {});
  for (const double bytes : {1e6, 1e9}) {
    const std::vector<AlgorithmConfig> configs = usual_configs(pricer, bytes);
    const AlgorithmChoice choice = choose(pricer, configs, bytes);
    EXPECT_LT(choice.priced, configs.size() / 4) << bytes;
  }
}

TEST(AlgorithmChoice, WhatIsTooLargeIsSaid) {
  const Machine machine = machine_named("ring:8");
  Pricer pricer(machine, groups_of(machine).front(), {});
  const std::vector<AlgorithmConfig> configs = usual_configs(pricer, 1e6);
  EXPECT_EQ(choose(pricer, configs, 1e6, {.most_moves = 0}).untried.size(), configs.size());
  EXPECT_TRUE(choose(pricer, configs, 1e6, {.most_moves = 0}).best.empty());
  EXPECT_FALSE(fastest(pricer, {}, 1e6).has_value());
}

// With a budget of 0 the search ends once one config has been priced, and the other configs stay undecided.
TEST(AlgorithmChoice, ItsEffortIsBounded) {
  const Machine machine = machine_named("torus:4x4");
  Pricer pricer(machine, groups_of(machine).front(), {});
  const std::vector<AlgorithmConfig> configs = usual_configs(pricer, 1e6);
  const AlgorithmChoice hasty = choose(pricer, configs, 1e6, {.most_effort = 0}), whole = choose(pricer, configs, 1e6);
  ASSERT_EQ(hasty.best.size(), 1u);
  EXPECT_FALSE(hasty.untried.empty());
  EXPECT_TRUE(whole.untried.empty());
  EXPECT_GE(hasty.best.front().time, whole.best.front().time);
  EXPECT_LT(hasty.priced, whole.priced + whole.others.size());
}

// With a small budget the choice must still take less than 1.5 times as long as torus. halving_doubling is priced
// soonest, as it has few steps, but takes several times as long.
TEST(AlgorithmChoice, WhereTheEffortIsUsedUpTheMostPromisingWayIsPriced) {
  const Machine machine = machine_named("torus:16x16x10");
  Pricer pricer(machine, groups_of(machine).front(), {.operation = {.collective = all_gather}});
  const std::vector<AlgorithmConfig> configs = usual_configs(pricer, 1e6);
  const Time torus = pricer.price({.algorithm = "torus", .dims = {16, 16, 10}}, 1e6).time;
  for (const std::int64_t effort : {2'000'000, 3'000'000}) {
    const AlgorithmChoice hasty = choose(pricer, configs, 1e6, {.most_effort = effort});
    EXPECT_LT(hasty.best.front().time, torus * 3 / 2) << effort << ": " << hasty.best.front().config.algorithm;
  }
}

// A config whose chunks cannot be numbered is left out of the choice.
TEST(AlgorithmChoice, LeavesOutWhatCannotBeWrittenDown) {
  const Machine machine = machine_named("torus:48x48x48");
  Pricer pricer(machine, groups_of(machine).front(), {});
  const std::vector<AlgorithmConfig> configs = {{.algorithm = "mesh", .channels = 4, .dims = {machine.ranks()}},
                                                {.algorithm = "torus", .dims = {48, 48, 48}}};
  const AlgorithmChoice choice = choose(pricer, configs, 1 << 30);
  ASSERT_EQ(choice.best.size(), 1u);
  EXPECT_EQ(choice.best.front().config.algorithm, "torus");
  ASSERT_EQ(choice.left_out.size(), 1u);
  EXPECT_NE(choice.left_out.front().why.find("chunks of tmp"), std::string::npos) << choice.left_out.front().why;
}

// Steps that replace a shorter prefix of the same program do not fill the cache.
TEST(ScheduleCache, KeepsWhatIsWrittenAgainLonger) {
  constexpr Rank ranks = 512;
  const AlgorithmConfig ring{.algorithm = "ring", .dims = {ranks}};
  const schedule::Request request =
      schedule::request_by(ring, {.operation = {.collective = all_reduce}, .dims = {ranks}});
  const auto first_steps = [&](ScheduleCache& shelf, std::size_t least) {
    return shelf.steps(ring, schedule::algorithm_named("ring"), request, 0, least, [] {});
  };
  ScheduleCache shelf;
  std::size_t written = 0;
  for (std::size_t least = 1; least <= 1000; ++least) written += first_steps(shelf, least)->program.steps.size();
  ASSERT_GT(written, 400'000u);  // more than a cache keeps
  EXPECT_EQ(first_steps(shelf, 1000), first_steps(shelf, 1000));
}

TEST(AlgorithmChoice, EndsSoonAfterItIsToldTo) {
  const Machine machine = machine_named("trn2.48xlarge x 2");
  for (const int patience : {0, 1, 10, 100, 1000}) {
    std::atomic<int> polls = 0;
    Pricer pricer(machine, groups_of(machine).front(), {.stopped = [&](Time, double) { return ++polls > patience; }});
    const AlgorithmChoice choice = choose(pricer, usual_configs(pricer, 1e8), 1e8);
    EXPECT_LE(choice.best.size(), 1u);
    EXPECT_LE(polls, patience + 10);
  }
}

}  // namespace
}  // namespace trellis::sim
