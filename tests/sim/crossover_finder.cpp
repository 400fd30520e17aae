#include "sim/cluster/tune/crossover_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace trellis::sim {
namespace {

// A sweep, and the sizes at which one config takes over from another.
struct Found {
  Machine machine;
  SweepSpec sweep;
  std::unique_ptr<Pricer> pricer;
  std::vector<BestConfigRange> regions;
  std::vector<ConfigCost> priced;

  Found(const char* name, const std::vector<std::string>& algorithms, std::vector<double> sizes, bool family)
      : machine(machine_named(name)) {
    sweep = {groups_of(machine).front(), {}, {}, std::move(sizes)};
    pricer = std::make_unique<Pricer>(machine, sweep.group, sweep.settings);
    sweep.configs = configs_of(*pricer, algorithms, {1, 2, 4}, {1});
    CrossoverFinder borders(machine, sweep, sim::sweep(machine, sweep, {}), {});
    regions = borders.regions(family);
    priced = borders.priced();
  }

  Time time(const AlgorithmConfig& config, double bytes) { return pricer->price(config, bytes).time; }
  Time best(double bytes) {
    Time least = forever;
    for (const AlgorithmConfig& config : sweep.configs) least = std::min(least, time(config, bytes));
    return least;
  }
  const BestConfigRange& chosen(double bytes) {
    return *std::prev(std::ranges::upper_bound(regions, bytes, {}, &BestConfigRange::from));
  }
};

// recursive_doubling sends all bytes in few steps, ring a part of them in each of many: the former has less latency,
// and is faster up to some size.
TEST(CrossoverFinder, LieAtTheFirstByteWhereTheOtherIsCheaper) {
  for (const std::vector<double>& sizes :
       {std::vector<double>{64, 1e9}, std::vector<double>{64, 1 << 16, 1 << 20, 1e9}}) {
    Found found("switch:16", {"recursive_doubling", "ring"}, sizes, true);
    ASSERT_EQ(found.regions.size(), 2U);
    const BestConfigRange &before = found.regions[0], &after = found.regions[1];
    EXPECT_EQ(before.from, 0);
    EXPECT_EQ(before.at, 64);
    EXPECT_EQ(after.config.algorithm, "ring");
    EXPECT_LT(found.best(after.from), found.time(before.config, after.from));
    const auto cheapest = [&](const char* algorithm, double bytes) {
      Time least = forever;
      for (const AlgorithmConfig& config : found.sweep.configs)
        if (config.algorithm == algorithm) least = std::min(least, found.time(config, bytes));
      return least;
    };
    EXPECT_LT(cheapest("ring", after.from), cheapest("recursive_doubling", after.from));
    EXPECT_GE(cheapest("ring", after.from - 1), cheapest("recursive_doubling", after.from - 1));
  }
}

TEST(CrossoverFinder, TimesAreThoseOfTheSizesWhereRegionsBegin) {
  for (const bool family : {false, true}) {
    Found found("ring:8", {}, {1 << 10, 1 << 28}, family);
    ASSERT_GE(found.regions.size(), 2U);
    for (std::size_t i = 0; i < found.regions.size(); ++i) {
      const BestConfigRange& r = found.regions[i];
      EXPECT_EQ(r.time, found.time(r.config, r.at)) << text_of(r.config) << " at " << r.at;
      if (i > 0) {
        EXPECT_EQ(r.at, r.from);
        EXPECT_GT(r.from, found.regions[i - 1].from);
      }
    }
    for (const ConfigCost& c : found.priced) EXPECT_EQ(c.time, found.time(c.config, c.bytes)) << text_of(c.config);
  }
}

// Even after a sweep of only two sizes, the config that is chosen for a size between them is not much slower than the
// best one.
TEST(CrossoverFinder, WhatWinsBetweenSamplesIsFound) {
  Found found("ring:8", {}, {1 << 10, 1 << 28}, false);
  EXPECT_GT(found.regions.size(), 2U) << "nothing wins in between: another machine would say more";
  for (double bytes = 1 << 10; bytes <= 1 << 28; bytes *= 2)
    EXPECT_LE(static_cast<double>(found.time(found.chosen(bytes).config, bytes)),
              1.06 * static_cast<double>(found.best(bytes)))
        << text_of(found.chosen(bytes).config) << " at " << bytes;
}

TEST(CrossoverFinder, WhoIsStoppedKeepsTheSamples) {
  const Machine machine = machine_named("switch:16");
  SweepSpec s{
      groups_of(machine).front(), {}, {AlgorithmConfig{"recursive_doubling"}, AlgorithmConfig{"ring"}}, {64, 1e9}};
  CrossoverFinder borders(machine, s, sweep(machine, s, {}), {.stopped = [] { return true; }});
  const auto regions = borders.regions(false);
  ASSERT_EQ(regions.size(), 2U);
  EXPECT_EQ(regions[1].from, 1e9);
}

}  // namespace
}  // namespace trellis::sim
